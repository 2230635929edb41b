"""What a client of Gemini Live has sent, sorted as a model needs it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from jackfield_testkit.providers.audio import milliseconds
from jackfield_testkit.providers.gemini.violations import Violations
from jackfield_testkit.providers.gemini.wording import decode
from jackfield_testkit.providers.model import Heard

RATE = 16_000
_T = TypeVar("_T")
_HEARD = re.compile(r"(\d+) ms")


class Inbox:
    """Takes messages in as they come, and lets a script wait for what is in them."""

    def __init__(self, violations: Violations) -> None:
        self.messages: list[Mapping[str, Any]] = []
        self.audio = bytearray()
        """The user's speech that no script has listened to yet."""
        self.open: dict[str, str] = {}
        """Calls that wait for an answer, and their names."""
        self.nameless: list[str] = []
        """Those of them that were sent without an id."""
        self.answers: dict[str, Any] = {}
        self.responses: list[Mapping[str, Any]] = []
        """Every `functionResponses` entry as it came."""
        self.notes: list[str] = []
        """What was added to the conversation without asking for an answer, since the last question."""
        self.history: list[Mapping[str, Any]] = []
        self.expects_history = False
        self.audio_ended = 0
        self._questions: list[Heard] = []
        self._violations = violations
        self._news = asyncio.Event()

    def take(self, message: Mapping[str, Any]) -> bool:
        """One message; whether it cuts short what the model says."""
        self.messages.append(message)
        cuts = False
        if content := message.get("clientContent"):
            cuts = self._content(content)
        elif given := message.get("realtimeInput"):
            cuts = self._realtime(given)
        elif given := message.get("toolResponse"):
            for response in given.get("functionResponses") or ():
                self._response(response)
        else:
            self._violations.note(f"a message of no known kind: {sorted(message)}")
        self._news.set()
        return cuts

    async def until(self, found: Callable[[], _T | None]) -> _T:
        """Wait for messages until something is found in what they left."""
        while (value := found()) is None:
            self._news.clear()
            await self._news.wait()
        return value

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._news.set()

    def question(self) -> Heard | None:
        """The next thing said that wants an answer."""
        if not self._questions:
            return None
        self.notes.clear()
        return self._questions.pop(0)

    def heard_note(self) -> int | None:
        """The milliseconds that a note since the last question says were heard."""
        found = (_HEARD.search(note) for note in self.notes)
        return next((int(each.group(1)) for each in found if each), None)

    @property
    def asked(self) -> bool:
        """Whether something waits for an answer."""
        return bool(self._questions)

    def speech(self, ms: int) -> Heard | None:
        """The user's speech, once there is so much of it."""
        length = milliseconds(len(self.audio), rate=RATE)
        if length < ms:
            return None
        self.audio.clear()
        return Heard(audio_ms=length)

    def _content(self, content: Mapping[str, Any]) -> bool:
        turns = content.get("turns") or []
        texts = [part["text"] for turn in turns for part in turn.get("parts") or () if "text" in part]
        if self.expects_history:
            self.history += turns
            self.expects_history = not content.get("turnComplete")
        elif content.get("turnComplete"):
            self._questions.append(Heard(text="\n".join(texts)))
            return True
        else:
            self.notes += texts
            return True
        return False

    def _realtime(self, given: Mapping[str, Any]) -> bool:
        if audio := given.get("audio"):
            if audio.get("mimeType") != f"audio/pcm;rate={RATE}":
                self._violations.note(f"audio of the kind {audio.get('mimeType')!r}")
            self.audio += decode(audio["data"])
        if text := given.get("text"):
            self._questions.append(Heard(text=text))
            return True
        if given.get("audioStreamEnd"):
            self.audio_ended += 1
        return False

    def _response(self, response: Mapping[str, Any]) -> None:
        self.responses.append(response)
        call_id = response.get("id")
        if not call_id or not isinstance(response.get("response"), dict):
            self._violations.note("a tool response without an id or without a response object")
            return
        if call_id not in self.open:
            # A call that was made without an id is answered under whatever id the client made up for it.
            name = response.get("name")
            call_id = next((each for each in self.nameless if self.open.get(each) == name), call_id)
        if self.open.pop(call_id, None) is None:
            self._violations.note(f"a tool response to {call_id!r}, which waits for none")
        self.answers[call_id] = response["response"]
