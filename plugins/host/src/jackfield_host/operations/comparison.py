"""The registry that is served, beside the one before it or the one that waits for a restart."""

from __future__ import annotations

from typing import Any

from jackfield.contract.snapshot import Snapshot, SnapshotError, previous
from jackfield.registry.registry import Registry
from jackfield_builder.snapshot_diff import SnapshotChange, compare_snapshots


def comparison(registry: Registry) -> dict[str, Any] | None:
    """What changed; nothing where there is no other registry to compare with. Reads files."""
    if registry.path is None:
        return None
    served = registry.snapshot()
    try:
        newest = Snapshot.load(registry.path)
        if newest.version != served.version:
            return _told(served, newest, waiting=True)
        return _told(Snapshot.load(previous(registry.path)), served, waiting=False)
    except SnapshotError:
        return None


def _told(before: Snapshot, after: Snapshot, *, waiting: bool) -> dict[str, Any]:
    return {
        "from": before.version,
        "to": after.version,
        "waiting": waiting,
        "changes": [_change(change) for change in compare_snapshots(before, after)],
    }


def _change(change: SnapshotChange) -> dict[str, Any]:
    bump = change.bump.name.lower() if change.bump else None
    return {"subject": change.subject or None, "what": change.what, "bump": bump}
