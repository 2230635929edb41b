"""Commands: their environment, output and end."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.workspace import Finished
from jackfield_workspace import shell as shell_module
from jackfield_workspace.settings import ShellSettings
from jackfield_workspace.shell import BashShell


def run(root: Path, command: str, *, seconds: float = 20, **said: Any) -> Finished:
    shell = BashShell(ShellSettings(root, **said))
    return asyncio.run(shell.run(command, seconds=seconds))


def is_gone(process: int) -> bool:
    """Return whether a process has ended, after a short wait."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_command_returns_both_outputs_in_order_and_its_exit_code(root: Path) -> None:
    done = run(root, "pwd; echo wrong >&2; echo last; exit 3")
    assert (done.output, done.exit_code, done.stopped) == (f"{root}\nwrong\nlast\n", 3, "")
    assert (done.left_out, done.isolated) == (0, False)
    assert run(root, "kill -9 $$").exit_code == -9
    assert run(root, "printf 'a\\xffb'").output == "a\ufffdb"


def test_a_command_sees_only_the_listed_variables(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("TOOLCHAIN", "/opt/tools")
    seen = run(root, "env").output
    assert "sk-secret" not in seen
    assert "TOOLCHAIN" not in seen
    names = {line.partition("=")[0] for line in seen.splitlines()}
    assert names <= {
        "HOME", "JACKFIELD_COMMAND", "LANG", "LC_ALL", "LC_CTYPE", "NO_COLOR", "PATH", "PWD", "SHLVL", "TERM",
        "TMPDIR", "TZ", "_",
    }  # fmt: skip
    assert "TOOLCHAIN=/opt/tools" in run(root, "env", environment=["PATH", "TOOLCHAIN"]).output


def test_a_command_has_a_temporary_home_and_no_input(root: Path) -> None:
    done = run(root, "touch ~/left $TMPDIR/too; ls ~; echo $HOME; read -t 5 line || echo no input")
    *listed, home, last = done.output.splitlines()
    assert (listed, last) == (["left", "too"], "no input")
    assert home not in (os.environ.get("HOME"), str(root))
    assert not Path(home).exists()
    assert list(root.iterdir()) == []


def test_both_ends_of_a_long_output_are_kept(root: Path) -> None:
    done = run(root, "seq 1 100000", output_bytes=3000)
    assert done.output.startswith("1\n2\n3\n")
    assert done.output.endswith("99999\n100000\n")
    assert f"[... {done.left_out} bytes left out ...]" in done.output
    assert done.left_out == 588_895 - 3000
    assert len(done.output) < 3100


def test_a_command_and_its_children_end_at_the_timeout(root: Path) -> None:
    command = """
        sleep 300 & echo $!
        env -i sleep 300 & echo $!
        setsid sleep 300 & echo $!
        (trap '' TERM HUP INT; setsid bash -c 'trap "" TERM; echo $$; sleep 300' &)
        nohup sleep 300 >/dev/null 2>&1 & echo $!
        echo started; sleep 300
    """
    done = run(root, command, seconds=3)
    assert (done.exit_code, done.stopped) == (None, "it reached its time limit")
    started = [int(line) for line in done.output.splitlines() if line.isdigit()]
    assert len(started) == 5
    assert [process for process in started if not is_gone(process)] == []


def test_the_timeout_of_a_command_is_limited_by_the_settings(root: Path) -> None:
    done = run(root, "sleep 300", seconds=60, max_seconds=0.3)
    assert done.stopped == "it reached its time limit"


def test_background_processes_end_with_the_command(root: Path) -> None:
    done = run(root, "sleep 300 & echo $!; setsid sleep 300 & echo $!")
    assert done.exit_code == 0
    assert all(is_gone(int(line)) for line in done.output.split())


def test_a_command_that_closes_its_output_keeps_running(root: Path) -> None:
    assert run(root, "exec >&- 2>&-; sleep 0.3; touch done; exit 7").exit_code == 7
    assert (root / "done").exists()
    assert run(root, "exec >&- 2>&-; sleep 300", seconds=0.5).stopped == "it reached its time limit"


def test_a_cancelled_command_ends_at_once_with_its_children(root: Path) -> None:
    os.mkfifo(root / "ready")

    async def main() -> None:
        shell = BashShell(ShellSettings(root))
        running = asyncio.create_task(
            shell.run("sleep 300 & echo $! > child; echo $$ > self; echo > ready; sleep 300", seconds=60)
        )
        # Opening a pipe waits for a writer.
        await asyncio.to_thread((root / "ready").read_text)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    for name in ("child", "self"):
        assert is_gone(int((root / name).read_text()))


def test_a_command_cancelled_before_its_output_is_read_is_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It already runs before the host opens the pipe to it."""
    os.mkfifo(root / "ready")

    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "connect_read_pipe", never)
        shell = BashShell(ShellSettings(root))
        running = asyncio.create_task(shell.run("echo $$ > self; echo > ready; sleep 300", seconds=60))
        await asyncio.to_thread((root / "ready").read_text)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert is_gone(int((root / "self").read_text()))


def test_a_flood_of_output_is_stopped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_module, "FLOOD_BYTES", 1_000_000)
    done = run(root, "yes")
    assert (done.exit_code, done.stopped) == (None, "it wrote more than 1000000 bytes")


def test_progress_is_reported_while_a_command_runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_module, "_PROGRESS_SECONDS", 0.0)
    told: list[int] = []

    async def progress(lines: int) -> None:
        told.append(lines)

    shell = BashShell(ShellSettings(root))
    asyncio.run(shell.run("echo one; sleep 0.2; echo two", seconds=20, progress=progress))
    assert told[-1] == 2


def test_output_is_reported_while_a_command_runs(root: Path) -> None:
    shown: list[str] = []

    def show(text: str) -> None:
        shown.append(text)
        # The command waits for the file, so it gets here only if its output arrives while it runs.
        (root / "seen").touch()

    shell = BashShell(ShellSettings(root))
    command = "printf 'one \\303'; until [ -e seen ]; do sleep 0.01; done; printf '\\251\\n'"
    done = asyncio.run(shell.run(command, seconds=60, output=show))
    assert (done.exit_code, done.output) == (0, "one é\n")
    assert shown == ["one ", "é\n"]


def test_a_command_that_cannot_be_started_is_rejected(root: Path) -> None:
    with pytest.raises(ToolError) as raised:
        run(root, "echo \0")
    assert raised.value.type is ErrorType.PERMANENT


def _sandbox_works() -> bool:
    if shutil.which("bwrap") is None:
        return False
    tried = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    return subprocess.run(tried, check=False, capture_output=True).returncode == 0


needs_bubblewrap = pytest.mark.skipif(not _sandbox_works(), reason="bubblewrap does not work here")


@needs_bubblewrap
def test_the_sandbox_contains_only_the_workspace_folder(root: Path, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("private")
    done = run(
        root,
        f"echo ours > here; cat {tmp_path}/diary.txt; ls /home /root /tmp; echo $HOME",
        sandbox="bubblewrap",
    )
    assert "private" not in done.output
    assert (root / "here").read_text() == "ours\n"
    assert done.isolated
    assert done.output.splitlines()[-1] == "/tmp/home"
    assert run(root, "touch /usr/x || echo read-only", sandbox="bubblewrap").output.endswith("read-only\n")


@needs_bubblewrap
def test_the_sandbox_has_no_network_and_no_other_processes(root: Path) -> None:
    done = run(
        root, "cat /proc/net/dev | tail -n +3 | cut -d: -f1; ls -d /proc/[0-9]* | wc -l", sandbox="bubblewrap"
    )
    interface, processes = done.output.split()
    assert interface == "lo"
    assert int(processes) < 10
    assert f"/proc/{os.getpid()}\n" not in run(root, "ls -d /proc/*", sandbox="bubblewrap").output


@needs_bubblewrap
def test_the_sandbox_contains_additional_folders_from_the_settings(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "toolchain"
    folder.mkdir()
    (folder / "version").write_text("7")
    said: dict[str, Any] = {"sandbox": "bubblewrap", "readable": [str(folder)]}
    assert run(root, f"cat {folder}/version; echo 8 > {folder}/version", **said).output.startswith("7")
    assert (folder / "version").read_text() == "7"


@needs_bubblewrap
def test_no_process_of_the_sandbox_outlives_the_command(root: Path) -> None:
    done = run(root, "setsid env -i sleep 298 & sleep 299", seconds=1, sandbox="bubblewrap")
    assert done.stopped
    for _ in range(200):
        alive = [name for name in Path("/proc").glob("[0-9]*/cmdline") if _says(name, b"sleep\x00298")]
        if not alive:
            return
        time.sleep(0.02)
    pytest.fail("a process of the sandbox is still there")


def _says(path: Path, words: bytes) -> bool:
    try:
        return words in path.read_bytes()
    except OSError:
        return False


def test_a_sandbox_that_cannot_be_set_up_runs_no_command(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
    with pytest.raises(ToolError, match="sandbox") as raised:
        run(root, "touch ran", sandbox="bubblewrap")
    assert raised.value.type is ErrorType.PERMANENT
    assert not (root / "ran").exists()
