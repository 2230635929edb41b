"""Records as JSON lines: everything a record holds, one a line, as loading reads it back."""

from __future__ import annotations

import json
from typing import Any

from jackfield_capability_types.knowledge import Record

from jackfield_kb.loading.drafts import FIELDS


def as_json(record: Record) -> dict[str, Any]:
    """A record as plain values, every field named, so that nothing is guessed when it is read back."""
    fields = {name: getattr(record, name) for name in FIELDS}
    moment = record.last_updated
    return fields | {
        "tags": list(record.tags),
        "last_updated": None if moment is None else moment.isoformat(),
        "metadata": dict(record.metadata),
    }


def to_line(record: Record) -> str:
    """One line, with its end."""
    return json.dumps(as_json(record), ensure_ascii=False) + "\n"
