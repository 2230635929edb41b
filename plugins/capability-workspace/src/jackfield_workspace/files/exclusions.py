"""Files that tools do not see: hidden ones (keys, passwords) and those that .gitignore excludes."""

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
    # Version control: hooks are programs, and the configuration can name programs.
    ".git", ".hg", ".svn",
    ".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker",
    ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".pgpass", ".vault-token",
    "credentials.json", "service-account*.json", "service_account*.json",
    "secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", "*.tfstate", "*.tfstate.*",
    # The files that configure this system must not be changed by its tools.
    "jackfield.toml", "jackfield.db*", "jackfield-audit.jsonl*", "tool_registry.json",
    "tool_registry.previous.json", f"{PARTIAL}*.part",
)  # fmt: skip
"""Patterns in the syntax of .gitignore files."""


class HiddenPatterns:
    """Patterns of hidden files; those of the settings come last, so that `!` can undo a default."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        lines = [line.casefold() for line in (*ALWAYS, *more)]
        try:
            self._spec = GitIgnoreSpec.from_lines(lines, backend="re2")
        except ValueError as error:
            raise SettingsError(f"[capabilities.workspace] hidden: {error}") from None

    def hides(self, parts: Parts) -> bool:
        """Return whether a path or one of its parent directories is hidden."""
        ways = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        # Whether the last name is a directory is not known yet.
        return any(self.entry(way, folder=True) for way in ways) or (
            bool(ways) and self.entry(ways[-1], folder=False)
        )

    def entry(self, path: str, *, folder: bool) -> bool:
        """Return whether a path is hidden, given that its parent directories are not."""
        # On a case-insensitive file system `.ENV` opens `.env`.
        name = path.casefold()
        return bool(self._spec.match_file(f"{name}/" if folder else name))


FILE = ".gitignore"
_MOST_BYTES = 256 * 1024

# pathspec marks the slash after a matching directory with this group, the only group of its expressions.
# For the pattern `*/` the group is the whole expression.
_SLASH = "(?P<ps_d>/)"
_GROUP = 1


class _Rule(NamedTuple):
    """One line of a .gitignore file."""

    leaves_out: bool
    fits: Any
    folders_only: bool

    def holds(self, path: str, *, folder: bool) -> bool:
        """Return whether the rule matches this entry itself, not only a parent directory."""
        if self.folders_only:
            found = self.fits.search(f"{path}/") if folder else None
            return found is not None and found.end(_GROUP) == len(path) + 1
        found = self.fits.search(path)
        return found is not None and (not self.fits.groups or found.group(_GROUP) is None)


class _Rules:
    """The rules of one .gitignore file; the last rule that matches decides."""

    def __init__(self, lines: list[str]) -> None:
        self._spec = _spec(lines)
        self._rules = [
            _rule(pattern.include, pattern.regex.pattern)
            for pattern in reversed(list(self._spec.patterns))
            if pattern.include is not None and pattern.regex is not None
        ]

    def decide(self, path: str, *, folder: bool) -> bool | None:
        """Return whether an entry is ignored; None if no rule matches."""
        # One combined match first, because most entries match no rule.
        if self._spec.check_file(f"{path}/" if folder else path).include is None:
            return None
        return next((each.leaves_out for each in self._rules if each.holds(path, folder=folder)), None)


class GitIgnore:
    """The .gitignore rules of one directory and its parents; the deepest file decides."""

    def __init__(self, files: tuple[tuple[int, _Rules], ...] = ()) -> None:
        self._files = files

    def within(self, here: int, path: str) -> GitIgnore:
        """Return the rules of a subdirectory, including its own .gitignore file."""
        try:
            data, _ = tree.read_file(here, FILE, FILE, _MOST_BYTES)
        except (OSError, ToolError):
            return self
        rules = _Rules(data.decode("utf-8", "replace").splitlines())
        return GitIgnore(((len(path) + 1 if path else 0, rules), *self._files))

    def leaves_out(self, path: str, *, folder: bool) -> bool:
        """Return whether an entry is ignored, given that its parent directories are not."""
        for begins, rules in self._files:
            verdict = rules.decide(path[begins:], folder=folder)
            if verdict is not None:
                return verdict
        return False


def _rule(leaves_out: bool, expression: str) -> _Rule:
    # `*/` matches every directory, and its first slash may belong to a parent.
    whole = f"^(?:.+/)?[^/]+{_SLASH}" if expression == _SLASH else expression
    return _Rule(leaves_out, re2.compile(whole), expression.endswith(_SLASH))


def _spec(lines: list[str]) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(lines, backend="re2")
    except ValueError:
        # One invalid line must not disable the others.
        return GitIgnoreSpec.from_lines([line for line in lines if _is_valid(line)], backend="re2")


def _is_valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line], backend="re2")
    except ValueError:
        return False
    return True
