"""The settings of the observers `audit` and `metrics`; OpenTelemetry has its own for `traces`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jackfield.settings import Ge, Help

HOST = "{host}"
"""The placeholder for the host's name in the audit log's path."""


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """`[observers.audit]`"""

    path: Annotated[
        Path,
        Help(
            "The file that the lines are written to. Its directory has to exist. `{host}` in the path stands "
            "for the host's name. A pipe or `/dev/stdout` works too, and a link is followed once, at startup."
        ),
    ] = Path("jackfield-audit.jsonl")
    max_bytes: Annotated[
        int, Ge(0), Help("The file is rotated before it grows beyond this; 0 never rotates.")
    ] = 100 * 1024 * 1024
    backups: Annotated[
        int,
        Ge(0),
        Help("How many rotated files are kept: `path.1` is the latest, and the oldest is replaced."),
    ] = 5
    arguments: Annotated[
        bool,
        Help("Write redacted arguments. Off by default to protect users' privacy."),
    ] = False

    @property
    def file_per_host(self) -> bool:
        """True if each host writes a file of its own."""
        return HOST in str(self.path)

    def path_for(self, host: str) -> Path:
        """Return the file of a host."""
        return Path(str(self.path).replace(HOST, host))

    def __post_init__(self) -> None:
        if self.max_bytes and not self.backups:
            raise ValueError("backups: expected at least 1 if max_bytes limits the file, got 0")


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """`[observers.metrics]`"""

    context_limit_tokens: Annotated[
        int,
        Ge(0),
        Help("The size of the model's context in tokens; 0 means unknown and disables the warning."),
    ] = 0
    response_limit_characters: Annotated[
        int, Ge(0), Help("How large the P95 of a tool's responses may be before a warning is logged.")
    ] = 1500
