"""Files that tools do not see: hidden ones (keys, passwords) and those that .gitignore leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped]
from jackfield import ToolError
from jackfield.settings import SettingsError
from pathspec import GitIgnoreSpec

from jackfield_workspace.files import tree
from jackfield_workspace.files.paths import Parts
from jackfield_workspace.files.tree import PARTIAL

ALWAYS = (
    # Version control: its hooks are programs, its configuration names some.
    ".git", ".hg", ".svn",
    ".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker",
    ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".pgpass", ".vault-token",
    "credentials.json", "service-account*.json", "service_account*.json",
    "secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", "*.tfstate", "*.tfstate.*",
    # What decides about the tools must not be theirs to change.
    "jackfield.toml", "jackfield.db*", "jackfield-audit.jsonl*", "tool_registry.json",
    "tool_registry.previous.json", f"{PARTIAL}*.part",
)  # fmt: skip
"""Patterns as in a .gitignore file."""


class HiddenPatterns:
    """Patterns of what is hidden; those of the settings come last, so that `!` takes one back."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        lines = [line.casefold() for line in (*ALWAYS, *more)]
        try:
            self._spec = GitIgnoreSpec.from_lines(lines, backend="re2")
        except ValueError as error:
            raise SettingsError(f"[capabilities.workspace] hidden: {error}") from None

    def hides(self, parts: Parts) -> bool:
        """Whether a path or a folder on the way to it is hidden."""
        ways = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        # Nobody knows yet whether the last is a folder.
        return any(self.entry(way, folder=True) for way in ways) or (
            bool(ways) and self.entry(ways[-1], folder=False)
        )

    def entry(self, path: str, *, folder: bool) -> bool:
        """Whether the last name of a path is hidden, where those before it are not."""
        # A disk may not tell upper from lower case, and then `.ENV` opens `.env`.
        name = path.casefold()
        return bool(self._spec.match_file(f"{name}/" if folder else name))


FILE = ".gitignore"
_MOST_BYTES = 256 * 1024

# How pathspec marks the slash behind a folder that a pattern fits, which is all it makes of `*/`. It is the
# one group that an expression has, if it has any.
_SLASH = "(?P<ps_d>/)"
_GROUP = 1


class _Rule(NamedTuple):
    """One line of a file."""

    leaves_out: bool
    fits: Any
    folders_only: bool

    def holds(self, path: str, *, folder: bool) -> bool:
        """Whether it speaks of this very entry, and not of a folder on the way to it."""
        if self.folders_only:
            found = self.fits.search(f"{path}/") if folder else None
            return found is not None and found.end(_GROUP) == len(path) + 1
        found = self.fits.search(path)
        return found is not None and (not self.fits.groups or found.group(_GROUP) is None)


class _Rules:
    """The lines of one file, of which the last that holds decides."""

    def __init__(self, lines: list[str]) -> None:
        self._spec = _spec(lines)
        self._rules = [
            _rule(pattern.include, pattern.regex.pattern)
            for pattern in reversed(list(self._spec.patterns))
            if pattern.include is not None and pattern.regex is not None
        ]

    def decide(self, path: str, *, folder: bool) -> bool | None:
        """Whether an entry is left out, or nothing when no line speaks of it."""
        # All at once first, because most entries are in no line.
        if self._spec.check_file(f"{path}/" if folder else path).include is None:
            return None
        return next((each.leaves_out for each in self._rules if each.holds(path, folder=folder)), None)


class GitIgnore:
    """The patterns that hold in one folder: its own, and those of the folders above it."""

    def __init__(self, files: tuple[tuple[int, _Rules], ...] = ()) -> None:
        self._files = files

    def within(self, here: int, path: str) -> GitIgnore:
        """The patterns one folder further down, whose own file is read if it has one."""
        try:
            data, _ = tree.read_file(here, FILE, FILE, _MOST_BYTES)
        except (OSError, ToolError):
            return self
        rules = _Rules(data.decode("utf-8", "replace").splitlines())
        return GitIgnore(((len(path) + 1 if path else 0, rules), *self._files))

    def leaves_out(self, path: str, *, folder: bool) -> bool:
        """Whether an entry is ignored, where the folders on the way to it are not."""
        for begins, rules in self._files:
            verdict = rules.decide(path[begins:], folder=folder)
            if verdict is not None:
                return verdict
        return False


def _rule(leaves_out: bool, expression: str) -> _Rule:
    # `*/` fits every folder, and its first slash need not be the one behind it.
    whole = f"^(?:.+/)?[^/]+{_SLASH}" if expression == _SLASH else expression
    return _Rule(leaves_out, re2.compile(whole), expression.endswith(_SLASH))


def _spec(lines: list[str]) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(lines, backend="re2")
    except ValueError:
        # One line that makes no sense must not switch off the others.
        return GitIgnoreSpec.from_lines([line for line in lines if _makes_sense(line)], backend="re2")


def _makes_sense(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line], backend="re2")
    except ValueError:
        return False
    return True
