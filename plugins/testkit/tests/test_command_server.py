"""A command of the server runs like one of its own Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from jackfield_testkit.command_server import run_command
from jackfield_testkit.sites import site

__all__ = ["site"]

WITNESS = """import json, os, sys
from pathlib import Path

from jackfield import hookimpl

seen = [sys.path, sys.argv, os.getcwd(), dict(os.environ), os.getpid(), sys.stdout.line_buffering]
Path("seen.json").write_text(json.dumps(seen))
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
