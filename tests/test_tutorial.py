"""The tutorial: every file is written and every command run, in the order of the page."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from process_environment import clean_environ

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
STEP = re.compile(
    r"^(?:`(?P<file>[\w./-]+)`:\n\n)?(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
HOSTS = ("jackfield dev", "jackfield serve")
SECONDS = 60

RELOADED = r"^[\d:]+  .*: built and loaded registry .*$"
"""A line of `jackfield dev` about a new registry."""


class Terminal:
    """A shell that keeps its folder and its environment from one command to the next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=folder, env={**clean_environ(), "JACKFIELD_HOST_PORT": "0"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(self, command: str) -> str:
        """Run a command; return what it printed. The test fails if its exit status is not 0."""
        assert self._shell.stdin
        assert self._shell.stdout
        self._shell.stdin.write(f"{command}\necho status $?\n")
        self._shell.stdin.flush()
        printed = ""
        for line in self._shell.stdout:
            if line.startswith("status "):
                assert line == "status 0\n", f"{command}\n{printed}"
                return printed
            printed += line
        raise AssertionError(f"the shell ended: {command}\n{printed}")

    def close(self) -> None:
        """End the shell."""
        self._shell.communicate(timeout=SECONDS)


class Host:
    """A host that runs in the background of the terminal."""

    def __init__(self, terminal: Terminal, command: str) -> None:
        self._terminal = terminal
        self._log = terminal.folder / f"{command.replace(' ', '-')}.log"
        terminal.run(f"{command} > {self._log} 2>&1 &")
        self.address = self._printed(r"Open (http://[\d.:]+)")[-1]

    def wait_for_reload(self, earlier: int) -> None:
        """Wait until it has reloaded once more."""
        self._printed(RELOADED, more_than=earlier)

    @property
    def reloads(self) -> int:
        """How often it has reloaded."""
        return len(re.findall(RELOADED, self._log.read_text("utf-8"), re.MULTILINE))

    def stop(self) -> None:
        """Stop it, as Ctrl-C does."""
        self._terminal.run("kill %% && wait %% || true")

    def _printed(self, pattern: str, more_than: int = 0) -> list[str]:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            text = self._log.read_text("utf-8") if self._log.exists() else ""
            if len(found := re.findall(pattern, text, re.MULTILINE)) > more_than:
                return found
            time.sleep(0.05)
        raise AssertionError(f"{pattern} was not printed: {text}")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.run("kill $(jobs -p) 2> /dev/null || true")
    opened.close()


def post(command: str, address: str) -> str:
    """Send the request of a curl command to the host's actual address; return the body of the response."""
    program, option, body, url = shlex.split(command)
    assert (program, option) == ("curl", "--json")
    assert json.loads(body)
    request = urllib.request.Request(
        url.replace("http://127.0.0.1:8765", address), body.encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return str(response.read(), "utf-8")
    except urllib.error.HTTPError as failed:
        return str(failed.read(), "utf-8")


def test_the_tutorial_leads_to_a_wheel_that_is_served_elsewhere(tmp_path: Path, terminal: Terminal) -> None:
    host: Host | None = None
    printed = ""
    for step in STEP.finditer(PAGE):
        text = step["text"]
        if step["file"]:
            earlier = host.reloads if host else 0
            (tmp_path / step["file"]).write_text(text, "utf-8")
            if host and "/src/" in step["file"]:
                host.wait_for_reload(earlier)
        elif step["language"] == "toml":
            project = tmp_path / "parcels" / "pyproject.toml"
            edited, lines = re.subn(
                r"^dependencies = .*\n", text, project.read_text("utf-8"), flags=re.MULTILINE
            )
            assert lines == 1
            project.write_text(edited, "utf-8")
        elif step["language"] == "sh":
            printed = ""
            for line in text.replace("~/jackfield", shlex.quote(str(ROOT))).splitlines():
                if line in HOSTS:
                    host = Host(terminal, line)
                elif line.startswith("curl "):
                    assert host
                    printed += post(line, host.address)
                else:
                    if host:
                        host.stop()
                        host = None
                    printed += terminal.run(line)
        else:
            assert step["language"] == ""
            missing = [line for line in text.splitlines() if line not in printed]
            assert missing == [], printed
    assert "Parcels to US are not possible." in printed
