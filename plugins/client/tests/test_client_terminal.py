"""The terminal: safe text, lines of input, confirmations, and text and lines on one screen."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from client_events import OUTCOMES, confirmation_required, tool_error
from hypothesis import given
from hypothesis import strategies as st
from jackfield.protocol.close_codes import UNKNOWN_SESSION
from jackfield_client.errors import SessionRejectedError
from jackfield_client.messages import Message, ToolErrorEvent
from jackfield_client.terminal.input import ConfirmationPrompt, LineReader
from jackfield_client.terminal.screen import (
    Screen,
    describe_error,
    describe_tool_error,
    format_duration,
    one_line,
    strip_control,
)

PROGRAM = """
from jackfield_client.terminal.screen import Screen

screen = Screen(prompting=False)
screen.write("First words.\\n\\n")
screen.line("a tool")
screen.write("And last.\\n")
screen.finish()
"""


@pytest.mark.parametrize("message", ["the registry is another", "The registry is another."])
def test_an_error_and_its_advice_are_two_sentences(message: str) -> None:
    said = describe_error(SessionRejectedError(UNKNOWN_SESSION, message))
    assert said == f"{message.removesuffix('.')}. Start a new one without --resume."


def run_program(errors: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=errors, text=True, check=True
    )


def test_text_and_lines_in_one_pipe_are_on_separate_lines() -> None:
    assert run_program(subprocess.STDOUT).stdout == "First words.\na tool\nAnd last.\n"


def test_text_in_its_own_pipe_is_unchanged() -> None:
    done = run_program(subprocess.PIPE)
    assert (done.stdout, done.stderr) == ("First words.\n\nAnd last.\n", "a tool\n")


@pytest.mark.parametrize("message", OUTCOMES)
def test_a_call_with_an_outcome_is_not_confirmed(message: Message) -> None:
    async def main() -> None:
        session: Any = None
        prompt = ConfirmationPrompt(session, Screen(prompting=False), None, approve=True)
        prompt.observe(confirmation_required(expires_at=2e10))
        prompt.observe(message)
        assert not await prompt.ask_next(lambda: None)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (tool_error(), "· book failed after 0.0 s: It broke."),
        (tool_error(state="state_of_a_newer_host"), "· book failed after 0.0 s: It broke."),
        (tool_error(error="CONFIRMATION_REQUIRED", state="waiting"), "· book is waiting for your decision"),
        (tool_error(state="declined"), "· book was declined and not run"),
        (tool_error(state="in_doubt"), "· book is in doubt: it may or may not have taken effect."),
    ],
)
def test_only_a_failed_call_is_described_as_failed(event: ToolErrorEvent, words: str) -> None:
    assert describe_tool_error(event).startswith(words)


def test_the_advice_for_the_model_is_not_shown_to_the_user() -> None:
    assert describe_tool_error(tool_error()) == "· book failed after 0.0 s: It broke."


@given(st.text())
def test_safe_text_contains_no_control_characters(text: str) -> None:
    safe = strip_control(text)
    assert not any(ord(each) < 32 and each not in "\n\t" for each in safe)
    assert not any(0x7F <= ord(each) < 0xA0 for each in safe)
    assert "\n" not in one_line(text)


def test_durations_are_formatted_by_their_size() -> None:
    formatted = [format_duration(seconds) for seconds in (0.04, 9.94, 42.2, 60, 61, 3600, 3725)]
    assert formatted == ["0.0 s", "9.9 s", "42 s", "1 min", "1 min 1 s", "1 h", "1 h 2 min"]


def test_lines_from_pipes_and_files_are_complete(tmp_path: Path) -> None:
    async def read_lines(fd: int) -> list[str]:
        async with LineReader(fd) as lines:
            found = []
            while (line := await lines.next()) is not None:
                found.append(line)
            return found

    async def main() -> None:
        (tmp_path / "lines.txt").write_bytes("eins\r\nzw\u00f6lf\n\nende".encode())
        with (tmp_path / "lines.txt").open("rb") as file:
            assert await read_lines(file.fileno()) == ["eins", "zw\u00f6lf", "", "ende"]
        reading, writing = os.pipe()
        waiting = asyncio.create_task(read_lines(reading))
        for piece in ("a", "b\nzw\u00f6".encode()[:-1], "\u00f6".encode()[1:], b"lf\n"):
            await asyncio.sleep(0)
            os.write(writing, piece if isinstance(piece, bytes) else piece.encode())
        os.close(writing)
        assert await waiting == ["ab", "zw\u00f6lf"]
        os.close(reading)

    asyncio.run(main())
