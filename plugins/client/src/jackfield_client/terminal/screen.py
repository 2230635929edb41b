"""The screen: the assistant's text on standard output, everything else as lines on standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

import click

from jackfield_client import messages
from jackfield_client.errors import ClientError, HandshakeError, SessionRejectedError
from jackfield_client.messages import Message, ToolComplete, ToolErrorEvent, ToolProgress

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tab and newline, and characters that change the direction of text."""


class Screen:
    """Writes streamed text and separate lines without mixing them."""

    def __init__(self, *, prompting: bool, whole_lines: bool = False) -> None:
        """With `prompting` the user is asked for each line; with `whole_lines` text is held until its end."""
        self._prompting = prompting
        self._whole_lines = whole_lines
        self._held = ""
        self._shared = not whole_lines and _outputs_are_shared()
        self._open = False
        self._prompt = ""

    def write(self, text: str) -> None:
        """Write a piece of the assistant's text."""
        self._clear_prompt()
        text_so_far = self._held + strip_control(text)
        # Trailing newlines wait for more text, so that no empty lines follow an answer.
        shown = "" if self._whole_lines else text_so_far.rstrip("\n")
        _echo(shown, nl=False)
        self._held = text_so_far[len(shown) :]
        self._open = self._open or bool(text)

    def finish(self) -> None:
        """End the assistant's text with a newline."""
        if self._open:
            _echo(self._held.rstrip("\n"))
        self._open, self._held = False, ""

    def show(self, text: str) -> None:
        """Show text that belongs to the conversation, such as the preview of a confirmation."""
        self._clear_prompt()
        self.finish()
        _echo(click.style(strip_control(text), bold=True))

    def line(self, text: str, **style: Any) -> None:
        """Print one line on standard error, dim by default."""
        self._clear_prompt()
        if self._open and self._shared:
            self.finish()
        _echo(
            click.style(text if text.startswith(" ") else one_line(text), **(style or {"dim": True})),
            err=True,
        )
        if self._prompt:
            self._print_prompt()

    def notice(self, text: str) -> None:
        """Print a line that the user should notice."""
        self.line(text, fg="yellow")

    def prompt(self, text: str = "> ") -> None:
        """Prompt the user for a line."""
        if self._prompting:
            self._prompt = text
            self._print_prompt()

    def prompt_answered(self) -> None:
        """Forget the prompt: the user has typed a line."""
        self._prompt = ""

    def _print_prompt(self) -> None:
        _echo(click.style(self._prompt, fg="cyan"), nl=False, err=True)

    def _clear_prompt(self) -> None:
        if self._prompt and sys.stderr.isatty():
            # The terminal keeps what the user has typed so far, but does not show it again.
            _echo("\r\033[K", nl=False, err=True)


def _outputs_are_shared() -> bool:
    """Return whether standard output and standard error are the same terminal, file or pipe."""
    try:
        same = os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):
        same = False
    return same or (sys.stdout.isatty() and sys.stderr.isatty())


def _echo(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    click.echo(text, nl=nl, err=err, color=False if os.environ.get("NO_COLOR") else None)


class MessagePrinter:
    """Prints the messages of a session: the answer as it is written, and a line for everything else."""

    def __init__(self, screen: Screen, *, history: bool) -> None:
        """With `history` the user's earlier messages are printed too."""
        self._screen = screen
        self._history = history
        self._answer = 0
        self._reconnect_reason = ""

    def print(self, message: Message) -> None:
        """Print a message, if it is one that the user sees."""
        screen = self._screen
        match message:
            case messages.TextDelta():
                self._write(message)
            case messages.ChatMessage(speaker="user") if self._history:
                screen.line(f"> {message.text}")
            case messages.ChatMessage(speaker="assistant") | messages.TurnComplete() | messages.Interrupted():
                screen.finish()
                if isinstance(message, messages.ChatMessage):
                    for claim in message.unbacked_claims or ():
                        screen.notice(
                            f"The model claims “{claim.text}”, but no successful call backs this up "
                            f"({claim.tool}: {claim.state})"
                        )
            case messages.Notification():
                screen.notice(f"{message.text} {message.suggestion}")
            case messages.ErrorMessage():
                screen.notice(f"{message.message} {message.suggestion or ''}")
            case messages.Reset():
                screen.notice("The host no longer has some earlier events from this session.")
            case messages.CustomEvent(name="chat_message"):
                screen.notice(str(message.fields.get("text", "")))
            case _:
                self._print_tool(message)
                self._print_connection(message)

    def _write(self, delta: messages.TextDelta) -> None:
        if delta.offset == 0 and delta.answer == self._answer:
            self._screen.finish()
            self._screen.line("(the answer starts over)")
        self._answer = delta.answer
        self._screen.write(delta.text)

    def _print_tool(self, message: Message) -> None:
        match message:
            case messages.ToolStart():
                self._screen.line(f"· {message.tool}")
            case messages.ToolProgress():
                self._screen.line(describe_tool_progress(message))
            case messages.ToolComplete():
                self._screen.line(describe_tool_complete(message))
            case messages.ToolErrorEvent():
                self._screen.line(describe_tool_error(message))

    def _print_connection(self, message: Message) -> None:
        match message:
            case messages.Reconnecting() if message.reason != self._reconnect_reason:
                self._reconnect_reason = message.reason
                self._screen.notice(f"Reconnecting: {message.reason}")
            case messages.Dormant():
                self._screen.line(f"({message.reason}; send a message to resume)")
            case messages.Resumed():
                if self._reconnect_reason:
                    self._screen.notice("Reconnected.")
                self._reconnect_reason, self._history = "", False


# Making text safe to print: most of it was written by a model, a tool or a host.


def strip_control(text: str) -> str:
    """Remove the characters that would control the terminal."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """Return the text on one line, so that it cannot imitate other lines of the output."""
    return " ".join(strip_control(text).split())


def format_duration(seconds: float) -> str:
    """Format a duration, such as `9.9 s` or `1 h 2 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def describe_tool_progress(event: ToolProgress) -> str:
    """Describe the progress of a call."""
    percent = f" ({event.fraction:.0%})" if event.fraction is not None else ""
    if event.data is not None:
        items = event.data.splitlines() if isinstance(event.data, str) else map(json.dumps, event.data)
        return "\n".join(f"  | {one_line(item)}" for item in items)
    return f"  {one_line(event.message)}{percent}"


def describe_tool_complete(event: ToolComplete) -> str:
    """Describe a call that succeeded, with its duration."""
    return f"· {one_line(event.tool)} done ({format_duration(event.duration_ms / 1000)})"


_CALL_STATES = {
    "waiting": "is waiting for your decision",
    "declined": "was declined and not run",
    "expired": "was not run: the confirmation expired",
    "running": "is still running",
    "in_doubt": "is in doubt: it may or may not have taken effect. It will not be run again automatically",
    "never_run": "was not run: the host stopped before the call took effect",
    "unknown": "could not be looked up: the host's store is unavailable. Ask again in a few seconds",
}
"""Descriptions of calls that did not simply fail, by their state."""


def describe_tool_error(event: ToolErrorEvent) -> str:
    """Describe a call that did not succeed."""
    state = "waiting" if event.error_type == "CONFIRMATION_REQUIRED" else event.state
    if state in _CALL_STATES:
        return f"· {one_line(event.tool)} {_CALL_STATES[state]}"
    # The error's suggestion is advice for the model, such as "Tell the user that nothing was found."
    after = format_duration(event.duration_ms / 1000)
    return f"· {one_line(event.tool)} failed after {after}: {one_line(event.message)}"


def describe_error(error: ClientError) -> str:
    """Describe why the session could not start or continue, and what to do."""
    text = one_line(str(error))
    if isinstance(error, SessionRejectedError) and error.close_reason.name == "banned" and error.retry_after:
        return f"You are banned from this host for another {format_duration(error.retry_after)}."
    if isinstance(error, SessionRejectedError) and error.close_reason.name == "provider_unavailable":
        return f"The host cannot reach its model. {text}"
    if isinstance(error, SessionRejectedError) and error.close_reason.name == "unknown_session":
        return f"{text.removesuffix('.')}. Start a new one without --resume."
    if isinstance(error, HandshakeError) and error.status == 401:
        return (
            f"{text} Put a token into an environment variable, and pass the variable's name with --token-env."
        )
    if error.retry_after:
        return f"{text} Try again in {format_duration(error.retry_after)}."
    return text
