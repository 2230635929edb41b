"""A command of the server runs like one of its own Python."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from jackfield_testkit.command_server import CommandProcess, run_command, start_command
from jackfield_testkit.site_packages import site

__all__ = ["site"]

WITNESS = """import json, os, sys
from pathlib import Path

from jackfield import hookimpl

seen = [sys.path, sys.argv, os.getcwd(), dict(os.environ), os.getpid(), sys.stdout.line_buffering]
Path("seen.json").write_text(json.dumps(seen))
"""

STATE = """import json, os, random, signal, sys, threading
from pathlib import Path

from jackfield import hookimpl

handlers = {each.name: str(signal.getsignal(each)).split(" at ")[0] for each in signal.valid_signals()
            if isinstance(each, signal.Signals)}
blocked = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))
opened = sorted(os.listdir("/proc/self/fd"))
same = [handlers, blocked, opened, len(threading.enumerate()), len(os.listdir("/proc/self/task")),
        os.getpgrp(), os.getsid(0), sys.orig_argv, sys.executable]
Path("seen.json").write_text(json.dumps([same, random.random()]))
"""

WAITS = """import os, sys

from jackfield import hookimpl

print(os.getpid(), sys.stdin.readline(), "and", file=sys.stderr, flush=True)
sys.stdin.readline()
"""


def environ(site: Any, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(site.folder), "JACKFIELD_ALLOW": "fab-*", **more}


def by_python(site: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jackfield_cli", *arguments]
    return subprocess.run(
        command, cwd=site.folder.parent, env=environ(site), capture_output=True, text=True, check=False
    )


def by_server(site: Any, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run_command(arguments, cwd=site.folder.parent, env=environ(site, **more))


def test_output_and_status_are_the_same(site: Any) -> None:
    site.tool("echo")
    site.tool("broken", guide=None)
    for arguments in (
        ["build"],
        ["tools", "--json"],
        ["biuld"],
        ["plugins"],
        ["--help"],
        ["call", "echo", "{}"],
    ):
        one, other = by_python(site, *arguments), by_server(site, *arguments)
        assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)


def test_path_arguments_folder_and_environment_are_the_same(site: Any) -> None:
    site.plugin("fab-witness", WITNESS)
    file = site.folder.parent / "seen.json"

    def seen() -> Any:
        found = json.loads(file.read_text())
        file.unlink()
        return found

    by_python(site, "plugins")
    *expected, one, buffered = seen()
    by_server(site, "plugins")
    *found, other, also_buffered = seen()
    assert found == expected
    assert buffered == also_buffered
    assert len({one, other, os.getpid()}) == 3


def test_variables_that_python_reads_at_its_start_have_an_effect(site: Any) -> None:
    site.plugin("fab-witness", "import sys\nraise RuntimeError(f'safe path: {sys.flags.safe_path}')\n")
    assert "safe path: False" in by_server(site, "plugins", "--json").stdout
    assert "safe path: True" in by_server(site, "plugins", "--json", PYTHONSAFEPATH="1").stdout


def test_a_command_that_a_signal_ends_has_its_number_as_status(site: Any) -> None:
    site.plugin("fab-fatal", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert by_server(site, "plugins").returncode == -9


def test_commands_change_nothing_for_the_next_one(site: Any) -> None:
    site.plugin(
        "fab-first", "import jackfield\nassert not hasattr(jackfield, 'left')\njackfield.left = True\n"
    )
    for _ in range(2):
        assert "AssertionError" not in by_server(site, "plugins").stdout


def test_a_command_reads_its_input(site: Any) -> None:
    site.plugin("fab-reader", "import sys\nraise RuntimeError(f'it read {sys.stdin.read()!r}')\n")
    done = run_command(["plugins", "--json"], cwd=site.folder.parent, env=environ(site), stdin="one, two")
    assert "it read 'one, two'" in done.stdout


@pytest.mark.parametrize("variables", [{}, {"PYTHONSAFEPATH": "1"}], ids=["forked", "new Python"])
def test_a_command_is_killed_after_its_timeout(site: Any, variables: dict[str, str]) -> None:
    site.plugin("fab-endless", "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\n"
                "time.sleep(600)\n")  # fmt: skip
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(["plugins"], cwd=site.folder.parent, env=environ(site, **variables), timeout=3)
    with pytest.raises(ProcessLookupError):
        os.kill(int((site.folder.parent / "pid").read_text()), 0)


def test_a_command_ends_as_with_python(site: Any) -> None:
    """Its exit handlers run, it waits for its threads, and it reports what it did not close."""
    site.plugin(
        "fab-end",
        "import atexit, gc, sys, threading, time, warnings\n"
        "gc.disable()\n"
        "warnings.simplefilter('always')\n"
        "atexit.register(lambda: print('exit handler', file=sys.stderr))\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread', file=sys.stderr))).start()\n"
        "cycle = [open(__file__)]\ncycle.append(cycle)\ndel cycle\n",
    )
    for done in by_python(site, "plugins"), by_server(site, "plugins"):
        assert done.stderr.startswith("thread\nexit handler\n")
        assert "ResourceWarning: unclosed file" in done.stderr


def test_commands_run_at_the_same_time(site: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    # Opening either end waits for the other.
    site.plugin("fab-meets", "import os\nopen(os.environ['GATE'], os.environ['END']).close()\n")
    waiting = threading.Thread(
        target=by_server, args=(site, "plugins"), kwargs={"GATE": str(gate), "END": "r"}
    )
    waiting.start()
    by_server(site, "plugins", GATE=str(gate), END="w")
    waiting.join()


def start(site: Any, *arguments: str, **options: Any) -> Any:
    return start_command(arguments, cwd=site.folder.parent, env=environ(site), **options)


def by_asyncio(site: Any, *arguments: str, **options: Any) -> Any:
    command = (sys.executable, "-m", "jackfield_cli", *arguments)
    return asyncio.create_subprocess_exec(*command, cwd=site.folder.parent, env=environ(site), **options)


PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def test_a_started_command_has_the_streams_and_the_status_of_a_process(site: Any) -> None:
    site.tool("echo")

    async def main() -> None:
        for arguments in (["tools"], ["biuld"], ["build"], ["call", "echo", "-"]):
            ended = []
            for started in (start, by_asyncio):
                process = await started(site, *arguments, **PIPES)
                out, err = await process.communicate(b'{"word": "x"}')
                # What follows is the time that the call took, and its session.
                ended.append((out, err.splitlines()[:3], process.returncode, await process.wait()))
            assert ended[0] == ended[1]
            assert ended[0][0] or ended[0][1]

    asyncio.run(main())


def test_a_started_command_can_write_to_files_and_to_one_stream(site: Any, tmp_path: Path) -> None:
    async def main() -> None:
        with (tmp_path / "output").open("wb") as file:
            process = await start(site, "biuld", stdin=subprocess.DEVNULL, stdout=file, stderr=file)
            assert await process.wait() == 2
        one = await start(site, "biuld", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert one.stdin is one.stderr is None
        output, nothing = await one.communicate()
        assert nothing is None
        assert output == (tmp_path / "output").read_bytes()
        assert b"No such command 'biuld'" in output

    asyncio.run(main())


def test_signals_descriptors_threads_and_process_groups_are_the_same(site: Any) -> None:
    site.plugin("fab-state", STATE)
    file = site.folder.parent / "seen.json"

    async def main() -> None:
        seen = []
        for started in (by_asyncio, start, start):
            process = await started(site, "plugins", stdout=subprocess.DEVNULL)
            await process.wait()
            seen.append(json.loads(file.read_text()))
            assert seen[0][0] == seen[-1][0]
        assert len({chance for _, chance in seen}) == 3

    asyncio.run(main())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_only_the_command_that_gets_it(site: Any, number: signal.Signals) -> None:
    site.plugin("fab-waits", WAITS)

    async def main() -> None:
        started = [await start(site, "plugins", "--json", **PIPES) for _ in range(2)]
        for process in started:
            assert isinstance(process, CommandProcess)
            assert process.stdin
            assert process.stderr
            process.stdin.write(b"hello\n")
            said = await process.stderr.readuntil(b"and\n")
            assert said.decode() == f"{process.pid} hello\n and\n"
            assert process.returncode is None
        one, other = started
        one.send_signal(number)
        real = await by_asyncio(site, "plugins", "--json", **PIPES)
        real.stdin.write(b"hello\n")
        await real.stderr.readuntil(b"and\n")
        real.send_signal(number)
        assert await one.wait() == await real.wait()
        await real.communicate()
        with pytest.raises(ProcessLookupError):
            one.send_signal(number)
        with pytest.raises(ProcessLookupError):
            os.kill(one.pid, 0)
        other.stdin.write(b"on\n")
        await other.communicate()
        assert other.returncode == 0

    asyncio.run(main())


def read_line(terminal: int) -> bytes:
    with open(terminal, "rb", closefd=False) as file:
        return file.readline()


def test_output_to_a_terminal_is_written_line_by_line(site: Any) -> None:
    site.plugin("fab-waits", "import sys\nprint('first')\nsys.stdin.readline()\n")

    async def main() -> None:
        ours, theirs = pty.openpty()
        process = await start(
            site, "plugins", stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.DEVNULL
        )
        os.close(theirs)
        assert read_line(ours) == b"first\r\n"
        await process.communicate(b"\n")
        os.close(ours)

    asyncio.run(main())


def test_a_started_command_also_gets_variables_that_python_reads_at_its_start(site: Any) -> None:
    site.plugin("fab-witness", "import sys\nraise RuntimeError(f'safe path: {sys.flags.safe_path}')\n")

    async def main() -> None:
        process = await start_command(
            ["plugins", "--json"], cwd=site.folder.parent, env=environ(site, PYTHONSAFEPATH="1"),
            stdout=subprocess.PIPE,
        )  # fmt: skip
        output, _ = await process.communicate()
        assert output
        assert b"safe path: True" in output

    asyncio.run(main())


def test_preloaded_modules_are_imported_before_the_command_starts(site: Any) -> None:
    site.plugin("fab-loaded", "import sys\nraise RuntimeError('wave' in sys.modules)\n")

    async def main() -> None:
        seen = []
        for modules in ([], ["nowhere.to_be_found", "wave"]):
            process = await start(site, "plugins", "--json", stdout=subprocess.PIPE, preload=modules)
            output, _ = await process.communicate()
            seen.append(output.decode())
        assert "RuntimeError: False" in seen[0]
        assert "RuntimeError: True" in seen[1]

    asyncio.run(main())
