"""Tool errors of file operations: types and messages for the model."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Mapping

from jackfield import ErrorType, ToolError

_log = logging.getLogger("jackfield.workspace")


def not_relative(path: str) -> ToolError:
    """A path that leads out of the workspace, or could."""
    return _permanent(
        f"{_shown(path)} does not lie in the workspace.",
        "Paths are relative to the workspace, without `..`, such as src/app.py.",
    )


def unusable_name(path: str) -> ToolError:
    """A path with what no file's name should have."""
    return _permanent(f"{_shown(path)} is no path of a file.", "Use a plain path such as src/app.py.")


def hidden(path: str) -> ToolError:
    """What the settings hide; the same sentence whether it exists or not."""
    return _permanent(
        f"{_shown(path)} is hidden from tools here: it may hold secrets.",
        "Go on without it. Do not look for its content in another way.",
    )


def link(path: str) -> ToolError:
    """A symbolic link."""
    return _permanent(
        f"{_shown(path)} is a link or lies behind one, and links are not followed.",
        "Use the path of the file itself; glob finds it.",
    )


def missing(path: str) -> ToolError:
    """A file or a folder that is not there."""
    return _permanent(f"There is no {_shown(path)}.", "Use glob to search for it.")


def folder(path: str) -> ToolError:
    """A folder where a file is wanted."""
    return _permanent(f"{_shown(path)} is a folder.", "Use glob to see what is in it.")


def not_a_folder(path: str) -> ToolError:
    """A file where a folder is wanted."""
    return _permanent(f"{_shown(path)} is no folder.", "Leave its name out of the folder.")


def special(path: str) -> ToolError:
    """A device, a pipe, a socket."""
    return _permanent(f"{_shown(path)} is no regular file.", "Go on without it.")


def binary(path: str, size: int) -> ToolError:
    """Not text."""
    return _permanent(f"{_shown(path)} is not a text file ({size} bytes).", "Go on without its content.")


def too_large(path: str, size: int, most: int) -> ToolError:
    """Larger than the settings allow."""
    return _permanent(
        f"{_shown(path)} has {size} bytes; at most {most} are read or written.",
        "Tell the user; another file may be enough.",
    )


def behind_the_end(path: str, first: int, total: int) -> ToolError:
    """Lines that are not there."""
    return _permanent(
        f"{_shown(path)} has {total} lines; line {first} is behind its end.", "Begin at an earlier line."
    )


def bad_pattern(kind: str, why: str) -> ToolError:
    """A pattern that cannot be understood."""
    return _permanent(f"The {kind} cannot be used: {why}.", "Correct it, or search for a plain text.")


def not_found(path: str) -> ToolError:
    """The text to be replaced is not in the file."""
    return _permanent(
        f"The text to replace is not in {_shown(path)}.",
        "Read the file, and copy the text from it exactly, with its indentation and without line numbers.",
    )


def ambiguous(path: str, times: int) -> ToolError:
    """The text to be replaced is there more than once."""
    return _permanent(
        f"The text to replace is in {_shown(path)} {times} times.",
        "Give more of the lines around it, so that it is there once, or set replace_all.",
    )


def nothing_to_do(path: str) -> ToolError:
    """A replacement of a text by itself."""
    return _permanent(f"Old and new text are the same; {_shown(path)} stays as it is.", "Check new_text.")


def not_encodable(path: str, encoding: str) -> ToolError:
    """Characters that the file's encoding does not have."""
    return _permanent(
        f"{_shown(path)} is written in {encoding}, which lacks a character of the new text.",
        "Use other characters, or ask the user whether the file may become UTF-8.",
    )


def exists(path: str) -> ToolError:
    """A file that would have been overwritten."""
    return ToolError(
        ErrorType.CONFLICT,
        f"{_shown(path)} exists already, with other content.",
        suggestion="Change it with edit_file, choose another name, or set overwrite: the user is then asked.",
    )


def stale(path: str) -> ToolError:
    """A file that changed since it was read."""
    return ToolError(
        ErrorType.CONFLICT,
        f"{_shown(path)} was changed by somebody else since it was read; nothing was written.",
        suggestion="Read it again, and repeat the change if it still makes sense.",
    )


def busy() -> ToolError:
    """Somebody else is writing."""
    return ToolError(
        ErrorType.TRANSIENT, "Another write takes too long; nothing was written.", retryable=True
    )


def protected(path: str) -> ToolError:
    """What the operating system does not let us do."""
    return _permanent(f"We have no permission for {_shown(path)}.", "Tell the user that it is protected.")


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
    """What the operating system said; the whole of it is for the log."""
    if cause := _CAUSES.get(error.errno or 0):
        return cause(path)
    _log.error("%s: %s", path, error)
    return ToolError(ErrorType.TRANSIENT, f"{_shown(path)}: {error.strerror}.", suggestion="Tell the user.")


def _permanent(message: str, suggestion: str) -> ToolError:
    return ToolError(ErrorType.PERMANENT, message, suggestion=suggestion)


def _shown(path: str) -> str:
    """A model's path in a sentence: on one line, and not endless."""
    plain = "".join(each if each.isprintable() else "?" for each in path)
    return f"`{plain[:200]}`" if plain else "The workspace itself"
