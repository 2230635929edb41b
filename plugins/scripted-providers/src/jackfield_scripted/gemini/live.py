"""The scripted model behind Gemini Live."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jackfield_scripted.audio import milliseconds, tone
from jackfield_scripted.gemini.live_socket import LiveInbox
from jackfield_scripted.gemini.wire_format import CLOSE_REASONS, encode, function_call
from jackfield_scripted.script import ScriptedCall, ScriptedModel, UserInput, split_text
from jackfield_scripted.server import Violations

CHUNK_MS = 40
MS_PER_WORD = 60
_NOTE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class GeminiOptions:
    """How the scripted model behaves where Gemini models differ."""

    calls_in: Literal["tool_call", "content", "both"] = "tool_call"
    """Where a call is sent: in a `toolCall`, in the content of the turn, or in both."""

    call_ids: bool = True
    """True if calls have ids."""

    voice_activity: bool = False
    """True if the start and end of the user's speech are announced."""

    blocking: bool = True
    """True if new user input cancels open calls."""


class LiveModel(ScriptedModel):
    """Plays one connection."""

    def __init__(
        self,
        setup: Mapping[str, Any],
        send: Callable[[Mapping[str, Any]], Awaitable[None]],
        close: Callable[[int, str], Awaitable[None]],
        *,
        violations: Violations,
        options: GeminiOptions,
        handle: Callable[[LiveModel], str],
    ) -> None:
        self.setup = setup
        self.options = options
        self.inbox = LiveInbox(violations)
        self.inbox.expects_history = bool(
            (setup.get("historyConfig") or {}).get("initialHistoryInClientContent")
        )
        self.inbox.non_blocking = frozenset(
            name for name, each in self.tools.items() if each.get("behavior") == "NON_BLOCKING"
        )
        self.generating = False
        self.resumed: LiveModel | None = None
        """The model of the connection that this one resumes."""
        self._send = send
        self._close = close
        self._handle = handle
        self._call_count = 0
        self._spoken_bytes = 0
        self._words = 0

    async def receive(self, message: Mapping[str, Any]) -> None:
        """Handle a client message; new user input interrupts the model and cancels open calls."""
        if not self.inbox.add(message):
            return
        if self.generating:
            await self._interrupt()
        if self.inbox.open and self.options.blocking:
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

    async def hears(self) -> UserInput:
        """Wait for a text that expects a response."""
        return await self.inbox.until(self.inbox.question)

    async def hears_speech(self, transcript: str, *, after_ms: int = 200) -> UserInput:
        """Wait for `after_ms` of audio, and send its transcript."""
        heard = await self.inbox.until(lambda: self.inbox.speech(after_ms))
        if self.options.voice_activity:
            await self._send({"voiceActivity": {"voiceActivityType": "ACTIVITY_START"}})
        if self.generating:
            await self._interrupt()
        for piece in split_text(transcript, 2):
            await self._content(inputTranscription={"text": piece})
        if self.options.voice_activity:
            await self._send({"voiceActivity": {"voiceActivityType": "ACTIVITY_END"}})
        return UserInput(transcript, heard.audio_ms)

    async def says(self, text: str, *, pieces: int = 3) -> None:
        """Send a complete response."""
        parts = split_text(text, pieces)
        total = MS_PER_WORD * len(text.split())
        self._begin()
        for number, piece in enumerate(parts):
            first, last = (total * n // len(parts) for n in (number, number + 1))
            await self._speak(piece, tone(last - first, start_ms=first))
            # Lets the client interrupt.
            await asyncio.sleep(0)
            if not self.generating:
                return
        await self.ends_speaking()

    async def speaks(self, text: str, *, ms: int) -> None:
        """Start a response and leave it open."""
        self._begin()
        await self._speak(text, b"")
        for start in range(0, ms, CHUNK_MS):
            if not self.generating:
                return
            await self._speak("", tone(min(CHUNK_MS, ms - start), start_ms=start))

    async def ends_speaking(self) -> None:
        """Complete the response."""
        if self.generating:
            self.generating = False
            await self._content(generationComplete=True)
            await self._complete()

    async def is_interrupted(self) -> None:
        """Cut the response short, as the user's voice does."""
        await self._interrupt()

    async def truncated(self) -> int:
        """Return the played time from the client's note; without a note, everything that was sent."""
        inbox = self.inbox
        await inbox.until(
            lambda: True if inbox.played_ms() is not None or inbox.asked or inbox.audio else None
        )
        try:
            async with asyncio.timeout(_NOTE_SECONDS):
                return await inbox.until(inbox.played_ms)
        except TimeoutError:
            return milliseconds(self._spoken_bytes)

    async def calls(self, *calls: ScriptedCall, incomplete: bool = False) -> dict[str, Any]:
        """Call functions; malformed arguments end the turn, because Gemini cannot send them."""
        self.generating = True
        made = [self._function_call(call) for call in calls]
        if not all(isinstance(each["args"], dict) for each in made):
            self.generating = False
            await self._complete(turnCompleteReason="MALFORMED_FUNCTION_CALL")
            return {}
        if incomplete:
            await self._send_call_parts(made)
            await self._interrupt()
            return {}
        ids = [each["id"] for each in made]
        self.inbox.open |= {each["id"]: each["name"] for each in made}
        self.inbox.wake()
        sent = made
        if not self.options.call_ids:
            self.inbox.without_id += ids
            sent = [{key: value for key, value in each.items() if key != "id"} for each in made]
        await self._update(resumable=False)
        if self.options.calls_in != "tool_call":
            await self._send_call_parts(sent)
        if self.options.calls_in != "content":
            await self._send({"toolCall": {"functionCalls": sent}})
        return await self.results(*ids)

    async def cancels(self, *ids: str) -> None:
        """Cancel calls."""
        for each in ids:
            self.inbox.open.pop(each, None)
        self.inbox.wake()
        await self._send({"toolCallCancellation": {"ids": list(ids)}})

    async def results(self, *ids: str) -> dict[str, Any]:
        """Wait for the results; cancelled calls have none."""
        await self.inbox.until(lambda: None if any(each in self.inbox.open for each in ids) else True)
        return {each: self.inbox.answers[each] for each in ids if each in self.inbox.answers}

    async def goes_away(self, seconds: float) -> None:
        """Announce that the connection will end."""
        await self._send({"goAway": {"timeLeft": f"{seconds:g}s"}})

    async def fails(self, code: str, message: str = "") -> None:
        """Close the connection as Gemini does for that error."""
        number, reason = CLOSE_REASONS[code]
        await self.closes(number, f"{reason} {message}".rstrip())

    async def closes(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection."""
        await self._close(code, reason)

    async def refuses(self, reason: str = "PROHIBITED_INPUT_CONTENT") -> None:
        """End the turn without a response, with a reason from `TurnCompleteReason`."""
        await self._complete(turnCompleteReason=reason)

    async def updates(self, *, resumable: bool) -> None:
        """Report whether the session can be resumed now."""
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

    async def _send_call_parts(self, calls: Sequence[Mapping[str, Any]]) -> None:
        await self._content(modelTurn={"role": "model", "parts": [{"functionCall": call} for call in calls]})

    async def _interrupt(self) -> None:
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

    def _function_call(self, call: ScriptedCall) -> dict[str, Any]:
        self._call_count += 1
        return function_call(call, f"function-call-{self._call_count}")
