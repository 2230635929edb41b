"""Tool errors of file operations: types and messages for the model."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Mapping

from jackfield import ErrorType, ToolError

_log = logging.getLogger("jackfield.workspace")


def not_relative(path: str) -> ToolError:
    """The path is absolute or leads out of the workspace."""
    return _permanent(
        f"{_shown(path)} is not in the workspace.",
        "Paths are relative to the workspace, without `..`, such as src/app.py.",
    )


def unusable_name(path: str) -> ToolError:
    """The path contains characters or lengths that file names cannot have."""
    return _permanent(f"{_shown(path)} is not a valid file path.", "Use a plain path such as src/app.py.")


def hidden(path: str) -> ToolError:
    """The path is hidden; the message does not reveal whether the file exists."""
    return _permanent(
        f"{_shown(path)} is hidden from tools because it may contain secrets.",
        "Continue without it. Do not try to read its content in another way.",
    )


def link(path: str) -> ToolError:
    """The path is a symbolic link or leads through one."""
    return _permanent(
        f"{_shown(path)} is a symbolic link or leads through one; links are not followed.",
        "Use the path of the file itself; glob finds it.",
    )


def missing(path: str) -> ToolError:
    """The file or directory does not exist."""
    return _permanent(f"There is no {_shown(path)}.", "Use glob to search for it.")


def folder(path: str) -> ToolError:
    """The path is a directory, but a file is needed."""
    return _permanent(f"{_shown(path)} is a folder.", "Use glob to see what is in it.")


def not_a_folder(path: str) -> ToolError:
    """The path is a file, but a directory is needed."""
    return _permanent(f"{_shown(path)} is not a folder.", "Use the folder that contains it.")


def special(path: str) -> ToolError:
    """The path is a device, a pipe or a socket."""
    return _permanent(f"{_shown(path)} is not a regular file.", "Continue without it.")


def binary(path: str, size: int) -> ToolError:
    """The file is not text."""
    return _permanent(f"{_shown(path)} is not a text file ({size} bytes).", "Continue without its content.")


def too_large(path: str, size: int, most: int) -> ToolError:
    """The file is larger than the settings allow."""
    return _permanent(
        f"{_shown(path)} has {size} bytes; the limit for reading and writing is {most}.",
        "Tell the user; another file may be enough.",
    )


def behind_the_end(path: str, first: int, total: int) -> ToolError:
    """The first requested line is after the end of the file."""
    return _permanent(
        f"{_shown(path)} has {total} lines; line {first} is after its end.", "Start at an earlier line."
    )


def bad_pattern(kind: str, why: str) -> ToolError:
    """The pattern is invalid."""
    return _permanent(f"The {kind} cannot be used: {why}.", "Correct it, or search for a plain text.")


def not_found(path: str) -> ToolError:
    """The text to replace is not in the file."""
    return _permanent(
        f"The text to replace is not in {_shown(path)}.",
        "Read the file, and copy the text from it exactly, with its indentation and without line numbers.",
    )


def ambiguous(path: str, times: int) -> ToolError:
    """The text to replace occurs more than once."""
    return _permanent(
        f"The text to replace occurs {times} times in {_shown(path)}.",
        "Include more of the surrounding lines, so that it occurs only once, or set replace_all.",
    )


def nothing_to_do(path: str) -> ToolError:
    """The old and the new text are equal."""
    return _permanent(
        f"The old and the new text are the same; {_shown(path)} was not changed.", "Check new_text."
    )


def not_encodable(path: str, encoding: str) -> ToolError:
    """The new text has characters that the file's encoding lacks."""
    return _permanent(
        f"{_shown(path)} is encoded in {encoding}, which cannot represent a character of the new text.",
        "Use other characters, or ask the user whether the file may become UTF-8.",
    )


def exists(path: str) -> ToolError:
    """The file exists and would be overwritten."""
    return ToolError(
        ErrorType.CONFLICT,
        f"{_shown(path)} already exists with different content.",
        suggestion="Change it with edit_file, choose a different name, or set overwrite (asks the user).",
    )


def stale(path: str) -> ToolError:
    """Another program changed the file since the session read it."""
    return ToolError(
        ErrorType.CONFLICT,
        f"{_shown(path)} was changed by another program since it was read; nothing was written.",
        suggestion="Read it again, and repeat the change if it still makes sense.",
    )


def busy() -> ToolError:
    """Another process holds the write lock for too long."""
    return ToolError(
        ErrorType.TRANSIENT, "Another write is taking too long; nothing was written.", retryable=True
    )


def protected(path: str) -> ToolError:
    """The operating system denies access."""
    return _permanent(
        f"The host has no permission to access {_shown(path)}.", "Tell the user that it is protected."
    )


_CAUSES: Mapping[int, Callable[[str], ToolError]] = {
    errno.ENOENT: missing,
    errno.ELOOP: link,
    errno.EISDIR: folder,
    errno.ENOTDIR: not_a_folder,
    errno.EACCES: protected,
    errno.EPERM: protected,
    errno.EROFS: protected,
    errno.ENAMETOOLONG: unusable_name,
    errno.EINVAL: unusable_name,
    errno.EILSEQ: unusable_name,
    errno.ENXIO: special,
}


def trouble(path: str, error: OSError) -> ToolError:
    """Turn an operating system error into a tool error, and log the original."""
    if cause := _CAUSES.get(error.errno or 0):
        return cause(path)
    _log.error("%s: %s", path, error)
    return ToolError(ErrorType.TRANSIENT, f"{_shown(path)}: {error.strerror}.", suggestion="Tell the user.")


def _permanent(message: str, suggestion: str) -> ToolError:
    return ToolError(ErrorType.PERMANENT, message, suggestion=suggestion)


def _shown(path: str) -> str:
    """Quote a model's path for a message, on one line and truncated."""
    plain = "".join(each if each.isprintable() else "?" for each in path)
    return f"`{plain[:200]}`" if plain else "The workspace itself"
