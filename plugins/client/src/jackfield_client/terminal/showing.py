"""Shows what a session tells: the answer as it comes, and a line for everything else."""

from __future__ import annotations

from jackfield_client import messages
from jackfield_client.messages import Message
from jackfield_client.terminal import wording
from jackfield_client.terminal.screen import Screen


class Showing:
    """One session on the screen."""

    def __init__(self, screen: Screen, *, history: bool) -> None:
        """With `history` what was said before this client came is told first."""
        self._screen = screen
        self._history = history
        self._answer = 0
        self._reason = ""

    def show(self, message: Message) -> None:
        """Show a message, if it is one to be seen."""
        screen = self._screen
        match message:
            case messages.TextDelta():
                self._write(message)
            case messages.ChatMessage(speaker="user") if self._history:
                screen.line(f"> {message.text}")
            case messages.ChatMessage(speaker="assistant") | messages.TurnComplete() | messages.Interrupted():
                screen.finish()
            case messages.Notification():
                screen.notice(f"{message.text} {message.suggestion}")
            case messages.ErrorMessage():
                screen.notice(f"{message.message} {message.suggestion or ''}")
            case messages.Reset():
                screen.notice("Some of what happened in this session is no longer kept.")
            case messages.CustomEvent(name="chat_message"):
                screen.notice(str(message.fields.get("text", "")))
            case _:
                self._show_tool(message)
                self._show_connection(message)

    def _write(self, delta: messages.TextDelta) -> None:
        if delta.offset == 0 and delta.answer == self._answer:
            self._screen.finish()
            self._screen.line("(the answer begins anew)")
        self._answer = delta.answer
        self._screen.write(delta.text)

    def _show_tool(self, message: Message) -> None:
        match message:
            case messages.ToolStart():
                self._screen.line(f"· {message.tool}")
            case messages.ToolProgress():
                self._screen.line(wording.tool_progress(message))
            case messages.ToolComplete():
                self._screen.line(wording.tool_complete(message))
            case messages.ToolErrorEvent():
                self._screen.line(wording.tool_error(message))

    def _show_connection(self, message: Message) -> None:
        match message:
            case messages.Reconnecting() if message.reason != self._reason:
                self._reason = message.reason
                self._screen.notice(f"Reconnecting: {message.reason}")
            case messages.Dormant():
                self._screen.line(f"({message.reason}; write on to resume)")
            case messages.Resumed():
                if self._reason:
                    self._screen.notice("Connected again.")
                self._reason, self._history = "", False
