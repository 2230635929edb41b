"""The words of both sides as they are said, each once."""

from __future__ import annotations

from jackfield_client.messages import ChatMessage, Interrupted, Message, SessionStatus, Transcript
from jackfield_client.terminal.screen import Screen

_LABELS = {"user": "you", "assistant": "assistant"}


class Captions:
    """A line for every utterance, written while it is being said."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._speaker = ""
        self._begun = {"user": "", "assistant": ""}
        self._whole = {"user": "", "assistant": ""}
        self._state = ""

    def show(self, message: Message) -> None:
        """Show what belongs to the words, and what the session is doing."""
        if isinstance(message, Transcript) and message.speaker in _LABELS:
            (self._end if message.final else self._go_on)(message.speaker, message.text)
        elif isinstance(message, ChatMessage) and message.speaker in _LABELS:
            # What is left of an answer that was cut short has been shown.
            if not message.interrupted:
                self._end(message.speaker, message.text)
        elif isinstance(message, Interrupted):
            self._screen.finish()
            self._screen.line("(interrupted)")
            self._begun["assistant"] = self._speaker = ""
        elif isinstance(message, SessionStatus) and message.state != self._state:
            self._state = message.state
            self._screen.line(f"[{message.state}]")

    def _go_on(self, speaker: str, text: str) -> None:
        if not self._begun[speaker]:
            self._whole[speaker] = ""
        if speaker != self._speaker:
            self._screen.finish()
            self._screen.write(f"{_LABELS[speaker]}: ")
            self._speaker = speaker
        self._begun[speaker] += text
        self._screen.write(text)

    def _end(self, speaker: str, text: str) -> None:
        """All of an utterance: told as it was said and told as it is kept, in either order."""
        text = text.strip()
        if text and self._whole[speaker] == text:
            self._whole[speaker] = ""
            return
        begun, self._begun[speaker] = self._begun[speaker], ""
        rest = text.removeprefix(begun.strip()) if begun else text
        if begun.strip() and not text.startswith(begun.strip()):
            self._speaker = ""
        if rest:
            self._go_on(speaker, rest)
        self._begun[speaker] = self._speaker = ""
        self._whole[speaker] = text
        self._screen.finish()
