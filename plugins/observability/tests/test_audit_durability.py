"""When a line is on disk: soon, at the end, and after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from jackfield import ToolResponse, ok
from jackfield.governance import Call
from jackfield_observability.background import INTERVAL_SECONDS, _drain_all

Host = Callable[[str], subprocess.Popen[str]]


def recorded(path: Path) -> list[int]:
    return numbers(path.read_bytes())


def numbers(lines: bytes) -> list[int]:
    return [orjson.loads(line)["arguments"]["number"] for line in lines.splitlines()]


def finished(talk: Any, **arguments: Any) -> tuple[Call, ToolResponse]:
    """Return a finished call made without an event loop, which a forked child must not use."""
    call = Call(talk.orchestrator.registry.get("echo"), talk.session, arguments, b"", None)
    response = ok()
    call.seal(response)
    return call, response


def grown(path: Path, size: int = 0) -> int:
    """Wait until a file is longer than this; return its length."""
    deadline = time.monotonic() + 60
    while not path.exists() or path.stat().st_size <= size:
        assert time.monotonic() < deadline, f"nothing more was written to {path}"
        time.sleep(0.005)
    return path.stat().st_size


def test_a_line_is_written_within_a_second_without_being_asked_for(
    audited: Callable[..., Any], path: Path
) -> None:
    assert INTERVAL_SECONDS < 1
    talk, size = audited(), 0
    for number in range(3):
        talk.call(number=number)
        size = grown(path, size)
        assert recorded(path) == list(range(number + 1))


def test_nothing_is_written_on_the_call_path(audited: Callable[..., Any], path: Path) -> None:
    talk = audited()
    with talk.audit._work_lock:
        talk.call(number=1)
        assert path.stat().st_size == 0
        assert len(talk.audit.waiting) == 1


def test_closing_writes_the_queue_and_ends_the_thread(audited: Callable[..., Any], path: Path) -> None:
    before = threading.active_count()
    talk = audited()
    assert threading.active_count() == before + 1
    for number in range(200):
        talk.call(number=number)
    talk.run(talk.audit.close())

    assert recorded(path) == list(range(200))
    assert not any(thread.name == "jackfield-audit" for thread in threading.enumerate())
    talk.run(talk.audit.close())


def test_a_call_that_ends_after_the_close_is_written_at_exit(audited: Callable[..., Any], path: Path) -> None:
    talk = audited()
    talk.run(talk.audit.close())
    talk.call(number=1)
    _drain_all()

    assert recorded(path) == [1]


def test_the_queue_is_written_at_interpreter_exit(host: Host, path: Path) -> None:
    process = host("brief")
    _, complaints = process.communicate(timeout=60)

    assert (process.returncode, complaints) == (0, "")
    assert recorded(path) == list(range(1000))


@pytest.mark.parametrize("rounds", [1, 4])
def test_a_killed_process_loses_only_its_last_interval(host: Host, path: Path, rounds: int) -> None:
    process = host("endless")
    size, before, last = 0, 0.0, 0.0
    for _ in range(rounds):
        size = grown(path, size)
        before, last = last, time.time()
    process.send_signal(signal.SIGKILL)
    said, _ = process.communicate(timeout=60)

    finished = {int(number): float(when) for number, when in map(str.split, said.splitlines()[:-1])}
    # A process that is killed while it writes may leave a part of a line, which the next writer ends.
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    written = numbers(whole)
    assert written == list(range(len(written)))
    assert written
    # Calls before the last flush but one are in the file.
    lost = [number for number, when in finished.items() if number >= len(written) and when < before]
    assert lost == []


# Python warns because the parent may hold a lock that the child cannot release; this is what is tested.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_writes_its_own_lines_and_not_its_parents(
    audited: Callable[..., Any], path: Path
) -> None:
    talk = audited()
    with talk.audit._work_lock:
        talk.call(number=1)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                talk.audit.call_finished(*finished(talk, number=2))
                for _ in range(6000):
                    # In the file, not only out of the queue: the child then exits at once.
                    if b'"number":2' in path.read_bytes():
                        code = 0
                        break
                    time.sleep(0.01)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0

    lines = talk.lines()
    assert sorted(line["arguments"]["number"] for line in lines) == [1, 2]
