"""Words and lines on one screen, in one pipe, and apart."""

from __future__ import annotations

import subprocess
import sys

SHOWING = """
from jackfield_client.terminal.screen import Screen

screen = Screen(prompting=False)
screen.write("First words.\\n\\n")
screen.line("a tool")
screen.write("And last.\\n")
screen.finish()
"""


def shown(errors: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SHOWING], stdout=subprocess.PIPE, stderr=errors, text=True, check=True
    )


def test_in_one_pipe_a_line_stands_on_its_own() -> None:
    assert shown(subprocess.STDOUT).stdout == "First words.\na tool\nAnd last.\n"


def test_words_that_go_elsewhere_than_lines_are_whole() -> None:
    done = shown(subprocess.PIPE)
    assert (done.stdout, done.stderr) == ("First words.\n\nAnd last.\n", "a tool\n")
