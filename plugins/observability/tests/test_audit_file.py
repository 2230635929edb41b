"""The file under the audit: rotation, sharing, and disks that fail."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import orjson
import pytest
from jackfield.settings import SettingsError
from jackfield_observability import audit as audit_module
from jackfield_observability.audit import Audit
from jackfield_observability.audit_file import AuditFile
from jackfield_observability.settings import AuditSettings

Host = Callable[[str], subprocess.Popen[str]]


def numbers(*paths: Path) -> list[int]:
    """Return the numbers in lines made by `write`."""
    return [orjson.loads(line)["n"] for path in paths for line in path.read_bytes().splitlines()]


def line(number: int, width: int = 90) -> bytes:
    return orjson.dumps({"n": number, "padding": "x" * width}) + b"\n"


def append(file: AuditFile, lines: list[bytes]) -> tuple[int, OSError | None]:
    """Append lines; return how many are in the file, and why the others are not."""
    given = b"".join(lines)
    written, fault = file.append(given)
    return given.count(b"\n", 0, written), fault


def backups(path: Path) -> list[Path]:
    """Return the rotated files, oldest first, and the file itself last."""
    numbered = [each for each in path.parent.iterdir() if each.name.startswith(f"{path.name}.")]
    return [*sorted(numbered, key=lambda each: -int(each.suffix[1:])), path]


def test_only_the_owner_can_read_the_audit_file(path: Path) -> None:
    file = AuditFile(path, 250, 3)
    old_mask = os.umask(0)
    try:
        assert append(file, [line(0), line(1), line(2)]) == (3, None)
    finally:
        os.umask(old_mask)
        file.close()

    assert {stat.S_IMODE(each.stat().st_mode) for each in backups(path)} == {0o600}
    assert len(backups(path)) == 2


def test_rotation_keeps_files_below_the_limit_and_the_latest_lines(path: Path) -> None:
    file = AuditFile(path, 1000, 3)
    for start in range(0, 100, 5):
        assert append(file, [line(number) for number in range(start, start + 5)]) == (5, None)
    file.close()

    kept = backups(path)
    assert [each.name for each in kept] == [f"{path.name}.{n}" for n in (3, 2, 1)] + [path.name]
    assert all(each.stat().st_size <= 1000 for each in kept)
    latest = numbers(*kept)
    assert latest == list(range(100 - len(latest), 100))
    assert len(latest) > 20


def test_a_batch_larger_than_a_file_is_spread_over_several(path: Path) -> None:
    file = AuditFile(path, 1000, 50)
    assert append(file, [line(number) for number in range(100)]) == (100, None)
    assert append(file, [line(100, width=5000), line(101)]) == (2, None)
    file.close()

    assert numbers(*backups(path)) == list(range(102))
    assert sum(each.stat().st_size > 1000 for each in backups(path)) == 1


def test_without_a_limit_nothing_is_rotated(path: Path) -> None:
    file = AuditFile(path, 0, 0)
    assert append(file, [line(number) for number in range(1000)]) == (1000, None)
    file.close()

    assert backups(path) == [path]


def test_a_file_that_cannot_be_rotated_grows(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (path.parent / f"{path.name}.1").mkdir()
    (path.parent / f"{path.name}.1" / "in the way").touch()
    file = AuditFile(path, 300, 1)
    for number in range(10):
        assert append(file, [line(number)]) == (1, None)
    file.close()

    assert numbers(path) == list(range(10))
    assert caplog.text.count("cannot be rotated") == 1


def test_half_a_line_of_a_killed_process_does_not_corrupt_the_next(path: Path) -> None:
    path.write_bytes(line(0) + line(1)[:20])
    file = AuditFile(path, 0, 0)
    assert append(file, [line(2)]) == (1, None)
    file.close()

    assert path.read_bytes() == line(0) + line(1)[:20] + b"\n" + line(2)


def test_a_moved_file_is_created_again(path: Path) -> None:
    file = AuditFile(path, 0, 0)
    append(file, [line(0)])
    moved = path.rename(path.with_suffix(".old"))
    append(file, [line(1)])
    file.close()

    assert (numbers(moved), numbers(path)) == ([0], [1])


def test_a_pipe_is_written_to_and_never_rotated(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    file = AuditFile(fifo, 100, 1)
    assert append(file, [line(0), line(1)]) == (2, None)
    assert os.read(reader, 10_000) == line(0) + line(1)
    file.close()
    os.close(reader)


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to where one will be"])
def test_rotation_renames_the_target_of_a_link(
    opened: Callable[..., Any], tmp_path: Path, there: bool
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if there:
        (disk / "lines").touch()
    link = tmp_path / "audit.jsonl"
    link.symlink_to(disk / "lines")
    audit = Audit(AuditSettings(link, max_bytes=1000, backups=2))
    talk = opened(observers=[audit])
    for _ in range(5):
        talk.call()
    assert audit.drain()

    assert link.is_symlink()
    assert sorted(each.name for each in disk.iterdir()) == ["lines", "lines.1", "lines.2"]
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("audit")] == ["audit.jsonl"]
    assert link.read_bytes()


def test_standard_output_is_never_renamed(path: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from jackfield_observability.audit import Audit\n"
        "from jackfield_observability.settings import AuditSettings\n"
        "print(Audit(AuditSettings(Path('/dev/stdout')))._file.path)\n"
    )
    started = [sys.executable, "-c", program]
    piped = subprocess.run(started, stdout=subprocess.PIPE, text=True, check=True)
    assert piped.stdout == "/dev/stdout\n", "a pipe is not rotated, and has no other name"
    with path.open("w") as file:
        subprocess.run(started, stdout=file, check=True)
    assert path.read_text() == f"{path}\n", "rotation would rename the file, not /dev/stdout"


def test_lines_wait_while_another_process_holds_the_lock(path: Path) -> None:
    file = AuditFile(path, 0, 0)
    other = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(other, fcntl.LOCK_EX)
    written, fault = append(file, [line(0)])
    assert (written, isinstance(fault, BlockingIOError)) == (0, True)
    os.close(other)

    assert append(file, [line(0)]) == (1, None)
    file.close()


def test_processes_that_share_a_file_lose_nothing_when_it_rotates(path: Path, host: Host) -> None:
    hosts = [host("rotating") for _ in range(3)]
    for process in hosts:
        # A busy process may have to wait for the next interval and reports it; no line may be lost.
        process.communicate(timeout=60)
        assert process.returncode == 0

    lines = [orjson.loads(each) for file in backups(path) for each in file.read_bytes().splitlines()]
    assert sorted(each["arguments"]["number"] for each in lines) == sorted([*range(1000)] * 3)
    assert all(file.stat().st_size <= 20_000 for file in backups(path))


def test_a_path_that_cannot_be_written_fails_at_startup(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(SettingsError, match=r"^\[observers.audit\] path: .*/no/audit.jsonl: No such file"):
        Audit(AuditSettings(tmp_path / "no" / "audit.jsonl"))
    assert threading.active_count() == before


def test_a_full_disk_leaves_whole_lines_and_the_rest_follows(path: Path, host: Host) -> None:
    process = host("narrow")
    said, complaints = process.communicate(timeout=60)

    drained, size = said.split()
    assert drained == "True"
    assert 5000 < int(size) <= 6000
    assert "File too large" in complaints
    assert "is writable again; 0 earlier lines are missing" in complaints
    assert process.returncode == 0
    lines = [orjson.loads(each) for each in path.read_bytes().splitlines()]
    assert [each["arguments"]["number"] for each in lines] == list(range(40))


def test_lines_are_dropped_counted_and_reported_while_the_disk_stays_full(
    audited: Callable[..., Any], path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(audit_module, "PENDING_BYTES", 3000)
    talk = audited()
    folder = path.parent / "elsewhere"
    talk.audit._file.path = folder / "audit.jsonl"
    for number in range(100):
        assert talk.call(number=number).response.ok
    assert talk.audit.drain()
    dropped = talk.audit.dropped
    assert 80 < dropped < 100
    assert "audit.jsonl cannot be written (No such file or directory)" in caplog.text

    folder.mkdir()
    talk.call(number=100)
    assert talk.audit.drain()
    talk.call(number=101)
    assert talk.audit.drain()
    lines = [orjson.loads(each) for each in (folder / "audit.jsonl").read_bytes().splitlines()]
    kept = 100 - dropped
    assert [each["arguments"]["number"] for each in lines[:kept]] == list(range(kept))
    missing = sum(each["lines"] for each in lines if each["event"] == "dropped")
    assert missing == talk.audit.dropped
    assert [each["arguments"]["number"] for each in lines if each["event"] == "call"][-1] == 101
    assert "earlier lines are missing" in caplog.text
    assert caplog.text.count("cannot be written") == 1


def test_no_line_is_lost_if_the_folder_comes_back(audited: Callable[..., Any], path: Path) -> None:
    talk = audited()
    talk.call(number=0)
    talk.audit.drain()
    shutil.rmtree(path.parent)
    talk.call(number=1)
    talk.audit.drain()
    path.parent.mkdir()

    assert [each["arguments"]["number"] for each in talk.lines()] == [1]


def test_the_queue_is_bounded(audited: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "QUEUE_LIMIT", 50)
    talk = audited()
    with talk.audit._work_lock:
        for number in range(80):
            assert talk.call(number=number).response.ok
    lines = talk.lines()

    assert [each["event"] for each in lines] == ["call"] * 50 + ["dropped"]
    assert lines[-1]["lines"] == 30


def test_each_host_can_write_a_file_of_its_own(audited_host: ModuleType, tmp_path: Path) -> None:
    audit = Audit(AuditSettings(path=tmp_path / "audit-{host}.jsonl"))
    audit.started(SimpleNamespace(hosts=SimpleNamespace(name="north")))  # type: ignore[arg-type]
    host = audited_host.AuditedHost(observers=[audit])
    host.call(text="hello")
    host.run(audit.close())
    host.close()
    assert [path.name for path in tmp_path.iterdir()] == ["audit-north.jsonl"]
    assert orjson.loads((tmp_path / "audit-north.jsonl").read_bytes())["host"] == "north"


def test_a_folder_for_files_of_hosts_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be written to"):
        Audit(AuditSettings(path=tmp_path / "missing" / "audit-{host}.jsonl"))
