"""What a load did, for a person and for a machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from jackfield_kb.loading.problems import Problem


@dataclass(slots=True)
class Summary:
    """Counts of files, and everything a person should know about single ones."""

    files: int = 0
    """How many were found that can be read."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    gone: int = 0
    """Files that were loaded once and are no longer there; their records stay until a load with `--sync`."""

    records: int = 0
    """Written by this load: those of added and changed files."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    """What is no error: `what` says it, `mend` may be empty."""

    failed: int = 0
    """Files of which nothing could be loaded."""

    unknown: Counter[str] = field(default_factory=Counter)
    hidden: int = 0
    links: int = 0
    interrupted: bool = False
    dry_run: bool = False

    @property
    def done(self) -> int:
        """How many files have been dealt with."""
        return self.added + self.changed + self.unchanged + self.failed

    def as_json(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "files": self.files,
            "added": self.added,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "removed": self.removed,
            "gone": self.gone,
            "failed": self.failed,
            "records": self.records,
            "skipped": {"unknown": dict(self.unknown), "hidden": self.hidden, "links": self.links},
            "problems": [problem._asdict() for problem in self.problems],
            "notes": [{"path": note.path, "note": note.what, "line": note.line} for note in self.notes],
            "interrupted": self.interrupted,
            "dryRun": self.dry_run,
        }
