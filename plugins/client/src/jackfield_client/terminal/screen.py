"""The screen: the assistant's words on standard output, everything else as lines on standard error."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from jackfield_client.terminal.wording import one_line, plain


class Screen:
    """Keeps words and lines apart, whatever comes when."""

    def __init__(self, *, prompting: bool, whole_lines: bool = False) -> None:
        """`prompting` where a person is asked for each line; `whole_lines` where words wait for their end."""
        self._prompting = prompting
        self._whole_lines = whole_lines
        self._held = ""
        self._shared = not whole_lines and _are_one_place()
        self._open = False
        self._question = ""

    def write(self, text: str) -> None:
        """A piece of what the assistant says."""
        self._step_aside()
        said = self._held + plain(text)
        # What ends in empty lines is followed by none, so they wait for more words.
        shown = "" if self._whole_lines else said.rstrip("\n")
        _echo(shown, nl=False)
        self._held = said[len(shown) :]
        self._open = self._open or bool(text)

    def finish(self) -> None:
        """The assistant has said it."""
        if self._open:
            _echo(self._held.rstrip("\n"))
        self._open, self._held = False, ""

    def show(self, text: str) -> None:
        """Lines that belong to the conversation, such as what the user is asked to decide."""
        self._step_aside()
        self.finish()
        _echo(click.style(plain(text), bold=True))

    def line(self, text: str, **style: Any) -> None:
        """One line beside the conversation; dim unless told otherwise."""
        self._step_aside()
        if self._open and self._shared:
            self.finish()
        _echo(
            click.style(text if text.startswith(" ") else one_line(text), **(style or {"dim": True})),
            err=True,
        )
        if self._question:
            self._ask()

    def notice(self, text: str) -> None:
        """Something the user should know."""
        self.line(text, fg="yellow")

    def ask(self, question: str = "> ") -> None:
        """Invite the user to write."""
        if self._prompting:
            self._question = question
            self._ask()

    def answered(self) -> None:
        """The user has written."""
        self._question = ""

    def _ask(self) -> None:
        _echo(click.style(self._question, fg="cyan"), nl=False, err=True)

    def _step_aside(self) -> None:
        if self._question and sys.stderr.isatty():
            # What the user has typed so far stays with the terminal, and is shown again by nobody.
            _echo("\r\033[K", nl=False, err=True)


def _are_one_place() -> bool:
    """Whether words and lines meet: on a terminal, or where both are sent into one file or pipe."""
    try:
        same = os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):
        same = False
    return same or (sys.stdout.isatty() and sys.stderr.isatty())


def _echo(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    click.echo(text, nl=nl, err=err, color=False if os.environ.get("NO_COLOR") else None)
