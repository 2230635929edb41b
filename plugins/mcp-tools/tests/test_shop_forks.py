"""A forked shop looks like a program of its own to the host that starts it, and to the test that kills it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shop_deployment import Shop

PIPE = subprocess.PIPE


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start the program of a forked shop; yield it, and the process id that the shop has written."""
    shop = Shop(folder)
    with subprocess.Popen(shop.server["command"], stdin=PIPE, stdout=PIPE, stderr=PIPE) as program:
        assert program.stderr is not None
        assert program.stderr.readline() == b"the key is None\n"
        (process,) = shop.processes()
        yield program, process


def has_ended(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


def test_the_program_of_a_killed_shop_ends_like_it(tmp_path: Path) -> None:
    with running(tmp_path) as (program, process):
        os.kill(process, signal.SIGKILL)
        assert program.wait(10) == -signal.SIGKILL
        assert has_ended(process)
        assert program.stdout is not None
        assert program.stdout.read() == b""


def test_a_shop_ends_with_its_input_and_before_its_program(tmp_path: Path) -> None:
    with running(tmp_path) as (program, process):
        assert program.stdin is not None
        program.stdin.close()
        assert program.wait(10) == 0
        assert has_ended(process)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_shop_ends_with_its_program(number: int, tmp_path: Path) -> None:
    with running(tmp_path) as (program, process):
        program.send_signal(number)
        assert program.wait(10) == -number
        deadline = time.monotonic() + 10
        while not has_ended(process):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_shop_that_fails_has_the_output_and_status_of_a_new_python(tmp_path: Path) -> None:
    forked, new = Shop(tmp_path), Shop(tmp_path)
    new.use_new_python()
    ends = [
        subprocess.run(
            shop.server["command"],
            env={"SHOP_BROKEN": "1", "SHOP_KEY": "secret"}, stdin=subprocess.DEVNULL,
            stdout=PIPE, stderr=PIPE, check=False, cwd=tmp_path,
        )
        for shop in (forked, new)
    ]  # fmt: skip
    assert [each.returncode for each in ends] == [1, 1]
    assert [each.stdout for each in ends] == [b"", b""]
    assert ends[0].stderr == ends[1].stderr
