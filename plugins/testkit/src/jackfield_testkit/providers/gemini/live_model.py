"""The model behind Gemini Live."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from jackfield_testkit.providers.audio import milliseconds, tone
from jackfield_testkit.providers.gemini.inbox import Inbox
from jackfield_testkit.providers.gemini.violations import Violations
from jackfield_testkit.providers.gemini.wording import CLOSE_REASONS, encode
from jackfield_testkit.providers.model import Call, Heard, ScriptedModel, cut

CHUNK_MS = 40
MS_PER_WORD = 60
_GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class LiveHabits:
    """In what models of Live differ from each other."""

    calls_in: Literal["tool_call", "content", "both"] = "tool_call"
    """Where a call stands: in a `toolCall`, in the content of the turn, or in both."""

    call_ids: bool = True
    """Whether calls have ids."""

    voice_activity: bool = False
    """Whether begin and end of the user's speech are told."""

    blocking: bool = True
    """Whether something new from the user takes back calls that wait."""


class LiveModel(ScriptedModel):
    """Plays one connection."""

    def __init__(
        self,
        setup: Mapping[str, Any],
        send: Callable[[Mapping[str, Any]], Awaitable[None]],
        close: Callable[[int, str], Awaitable[None]],
        *,
        violations: Violations,
        habits: LiveHabits,
        handle: Callable[[LiveModel], str],
    ) -> None:
        self.setup = setup
        self.habits = habits
        self.inbox = Inbox(violations)
        self.inbox.expects_history = bool(
            (setup.get("historyConfig") or {}).get("initialHistoryInClientContent")
        )
        self.generating = False
        self.resumed: LiveModel | None = None
        """The model of the connection that this one takes up again."""
        self._send = send
        self._close = close
        self._handle = handle
        self._made = 0
        self._spoken_bytes = 0
        self._words = 0

    async def take(self, message: Mapping[str, Any]) -> None:
        """A message of the client; what is new from the user stops the model and takes waiting calls back."""
        if not self.inbox.take(message):
            return
        if self.generating:
            await self._cut()
        if self.inbox.open and self.habits.blocking:
            await self.cancels(*self.inbox.open)

    @property
    def instructions(self) -> str:
        """The system instruction of the setup."""
        parts = (self.setup.get("systemInstruction") or {}).get("parts") or ()
        return "\n".join(part.get("text", "") for part in parts)

    @property
    def tools(self) -> Mapping[str, Any]:
        """The function declarations of the setup."""
        declared = (tool.get("functionDeclarations") or () for tool in self.setup.get("tools") or ())
        return {each["name"]: each for declarations in declared for each in declarations}

    @property
    def received(self) -> list[Mapping[str, Any]]:
        """Every message after the setup, in camelCase."""
        return self.inbox.messages

    async def hears(self) -> Heard:
        """Wait for a text that wants an answer."""
        return await self.inbox.until(self.inbox.question)

    async def hears_speech(self, transcript: str, *, after_ms: int = 200) -> Heard:
        """Wait for so much audio, and write it down."""
        heard = await self.inbox.until(lambda: self.inbox.speech(after_ms))
        if self.habits.voice_activity:
            await self._send({"voiceActivity": {"voiceActivityType": "ACTIVITY_START"}})
        if self.generating:
            await self._cut()
        for piece in cut(transcript, 2):
            await self._content(inputTranscription={"text": piece})
        if self.habits.voice_activity:
            await self._send({"voiceActivity": {"voiceActivityType": "ACTIVITY_END"}})
        return Heard(transcript, heard.audio_ms)

    async def says(self, text: str, *, pieces: int = 3) -> None:
        """Speak an answer to its end."""
        parts = cut(text, pieces)
        total = MS_PER_WORD * len(text.split())
        self._begin()
        for number, piece in enumerate(parts):
            first, last = (total * n // len(parts) for n in (number, number + 1))
            await self._speak(piece, tone(last - first, start_ms=first))
            # Lets the client get a word in.
            await asyncio.sleep(0)
            if not self.generating:
                return
        await self.ends_speaking()

    async def speaks(self, text: str, *, ms: int) -> None:
        """Begin an answer and leave it unfinished."""
        self._begin()
        await self._speak(text, b"")
        for start in range(0, ms, CHUNK_MS):
            if not self.generating:
                return
            await self._speak("", tone(min(CHUNK_MS, ms - start), start_ms=start))

    async def ends_speaking(self) -> None:
        """Finish the answer."""
        if self.generating:
            self.generating = False
            await self._content(generationComplete=True)
            await self._complete()

    async def is_interrupted(self) -> None:
        """The user's voice cuts the answer short."""
        await self._cut()

    async def truncated(self) -> int:
        """What the client's note says was heard; when the user goes on and none comes, all that was sent."""
        inbox = self.inbox
        await inbox.until(
            lambda: True if inbox.heard_note() is not None or inbox.asked or inbox.audio else None
        )
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                return await inbox.until(inbox.heard_note)
        except TimeoutError:
            return milliseconds(self._spoken_bytes)

    async def calls(self, *calls: Call, taken_back: bool = False) -> dict[str, Any]:
        """Call functions; malformed arguments end the turn, because Gemini has no way to send them."""
        self.generating = True
        made = [self._made_of(call) for call in calls]
        if not all(isinstance(each["args"], dict) for each in made):
            self.generating = False
            await self._complete(turnCompleteReason="MALFORMED_FUNCTION_CALL")
            return {}
        if taken_back:
            await self._show(made)
            await self._cut()
            return {}
        ids = [each["id"] for each in made]
        self.inbox.open |= {each["id"]: each["name"] for each in made}
        self.inbox.wake()
        sent = made
        if not self.habits.call_ids:
            self.inbox.nameless += ids
            sent = [{key: value for key, value in each.items() if key != "id"} for each in made]
        await self._update(resumable=False)
        if self.habits.calls_in != "tool_call":
            await self._show(sent)
        if self.habits.calls_in != "content":
            await self._send({"toolCall": {"functionCalls": sent}})
        return await self.results(*ids)

    async def cancels(self, *ids: str) -> None:
        """Take calls back."""
        for each in ids:
            self.inbox.open.pop(each, None)
        self.inbox.wake()
        await self._send({"toolCallCancellation": {"ids": list(ids)}})

    async def results(self, *ids: str) -> dict[str, Any]:
        """Wait for answers; those of calls that were taken back do not come."""
        await self.inbox.until(lambda: None if any(each in self.inbox.open for each in ids) else True)
        return {each: self.inbox.answers[each] for each in ids if each in self.inbox.answers}

    async def goes_away(self, seconds: float) -> None:
        """Say that the connection will end."""
        await self._send({"goAway": {"timeLeft": f"{seconds:g}s"}})

    async def errs(self, code: str, message: str = "") -> None:
        """End the connection as Gemini does for that trouble."""
        number, reason = CLOSE_REASONS[code]
        await self.closes(number, f"{reason} {message}".rstrip())

    async def closes(self, code: int = 1000, reason: str = "") -> None:
        """End the connection."""
        await self._close(code, reason)

    async def refuses(self, reason: str = "PROHIBITED_INPUT_CONTENT") -> None:
        """End the turn without an answer, for a reason of `TurnCompleteReason`."""
        await self._complete(turnCompleteReason=reason)

    async def updates(self, *, resumable: bool) -> None:
        """Tell whether the session can be resumed now."""
        await self._update(resumable=resumable)

    def _begin(self) -> None:
        if not self.generating:
            self.generating = True
            self._spoken_bytes = self._words = 0

    async def _speak(self, text: str, pcm: bytes) -> None:
        self._spoken_bytes += len(pcm)
        self._words += len(text.split())
        if text:
            await self._content(outputTranscription={"text": text})
        for place in range(0, len(pcm), CHUNK_MS * 48):
            data = encode(pcm[place : place + CHUNK_MS * 48])
            blob = {"mimeType": "audio/pcm;rate=24000", "data": data}
            await self._content(modelTurn={"role": "model", "parts": [{"inlineData": blob}]})

    async def _show(self, calls: Sequence[Mapping[str, Any]]) -> None:
        await self._content(modelTurn={"role": "model", "parts": [{"functionCall": call} for call in calls]})

    async def _cut(self) -> None:
        self.generating = False
        await self._content(interrupted=True)
        await self._complete()

    async def _complete(self, **fields: Any) -> None:
        asked = sum(len(str(message)) for message in self.received) // 4 + 1
        usage = {"promptTokenCount": asked, "responseTokenCount": self._words + 1}
        await self._send({"serverContent": {"turnComplete": True, **fields}, "usageMetadata": usage})
        await self._update(resumable=not self.inbox.open)

    async def _update(self, *, resumable: bool) -> None:
        if "sessionResumption" in self.setup:
            update = (
                {"newHandle": self._handle(self), "resumable": True} if resumable else {"resumable": False}
            )
            await self._send({"sessionResumptionUpdate": update})

    async def _content(self, **fields: Any) -> None:
        await self._send({"serverContent": fields})

    def _made_of(self, call: Call) -> dict[str, Any]:
        self._made += 1
        args: Any = call.arguments
        if isinstance(args, str):
            try:
                args = orjson.loads(args)
            except orjson.JSONDecodeError:
                args = None
        return {"id": call.id or f"function-call-{self._made}", "name": call.tool, "args": args}
