"""What tools never see: keys, passwords, and the files by which this very system is run."""

from __future__ import annotations

from collections.abc import Iterable

from jackfield.settings import SettingsError
from pathspec import GitIgnoreSpec

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


class Hidden:
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
