"""Atomic writes and advisory locks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jackfield.atomic_files import acquire_lock, write_atomically


def test_a_write_replaces_the_whole_file_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.json"
    write_atomically(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_has_one_holder_until_its_descriptor_is_closed(tmp_path: Path) -> None:
    first = os.open(tmp_path, os.O_RDONLY)
    second = os.open(tmp_path, os.O_RDONLY)
    try:
        assert acquire_lock(first, None)
        assert not acquire_lock(second, 0)
        assert not acquire_lock(second, 0.03)
        os.close(first)
        assert acquire_lock(second, 0)
    finally:
        os.close(second)
