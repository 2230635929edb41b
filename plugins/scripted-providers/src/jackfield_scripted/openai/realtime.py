"""The scripted model behind the Realtime API."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson

from jackfield_scripted.audio import milliseconds
from jackfield_scripted.openai.errors import error_body
from jackfield_scripted.openai.realtime_response import RealtimeResponse
from jackfield_scripted.openai.realtime_session import RealtimeSession
from jackfield_scripted.script import ScriptedCall, ScriptedModel, UnsupportedStepError, UserInput, split_text

_MS_PER_WORD = 60


class RealtimeModel(ScriptedModel):
    """Plays one session."""

    def __init__(self, session: RealtimeSession) -> None:
        self.session = session
        self._current: RealtimeResponse | None = None
        self._call_count = 0
        self._outputs_read: dict[str, int] = {}
        self._speaking_item = ""

    @property
    def instructions(self) -> str:
        """The current instructions of the session."""
        return str(self.session.config.get("instructions", ""))

    @property
    def tools(self) -> Mapping[str, Any]:
        """The functions of the session."""
        return {each["name"]: each for each in self.session.config.get("tools") or ()}

    @property
    def received(self) -> list[Mapping[str, Any]]:
        """Every client event."""
        return self.session.received

    async def hears(self) -> UserInput:
        """Wait for a response that was requested and not cancelled since."""
        self._current = await self._next_response()
        text = "\n".join(self.session.texts)
        self.session.texts.clear()
        return UserInput(text=text)

    async def hears_speech(self, transcript: str, *, after_ms: int = 200) -> UserInput:
        """Wait for `after_ms` of audio and send the events of voice activity detection."""
        session = self.session
        if not session.webrtc:
            async with session.changed:
                await session.changed.wait_for(lambda: milliseconds(session.buffered) >= after_ms)
        audio_ms = after_ms if session.webrtc else milliseconds(session.buffered)
        await self._start_speech()
        item, self._speaking_item = self._speaking_item, ""
        await session.socket.send("input_audio_buffer.speech_stopped", item_id=item, audio_end_ms=audio_ms)
        await session.add_speech(item)
        if session.turn_detection.get("create_response"):
            await session.start_response()
        self._current = await self._next_response()
        await self._send_transcript(item, transcript)
        return UserInput(transcript, audio_ms)

    async def _send_transcript(self, item: str, transcript: str) -> None:
        if not (self.session.config.get("audio") or {}).get("input", {}).get("transcription"):
            return
        place = {"item_id": item, "content_index": 0}
        kind = "conversation.item.input_audio_transcription"
        for piece in split_text(transcript, 2):
            await self.session.socket.send(f"{kind}.delta", **place, delta=piece)
        usage = {"type": "tokens", "input_tokens": 3, "output_tokens": 3, "total_tokens": 6}
        await self.session.socket.send(f"{kind}.completed", **place, transcript=transcript, usage=usage)

    async def says(self, text: str, *, pieces: int = 3) -> None:
        """Send a complete response; stop silently when it is cancelled."""
        response = await self._open_response()
        if response.complete:
            return
        await response.start_message()
        parts = split_text(text, pieces)
        remaining = _MS_PER_WORD * len(text.split())
        for number, piece in enumerate(parts):
            if response.complete:
                return
            await response.send_text(piece)
            ms = remaining // (len(parts) - number)
            await response.send_audio(ms)
            remaining -= ms
        await self._finish(response)

    async def speaks(self, text: str, *, ms: int) -> None:
        """Start a response, or continue it."""
        response = await self._open_response()
        self._current = response
        if response.complete:
            return
        if not response.item:
            await response.start_message()
        await response.send_text(text)
        await response.send_audio(ms)

    async def ends_speaking(self) -> None:
        """Complete the response."""
        if self._current is not None:
            response, self._current = self._current, None
            await self._finish(response)

    async def is_interrupted(self) -> None:
        """Report speech, and cancel the response if the session is configured to."""
        await self._start_speech()

    async def truncated(self) -> int:
        """Wait for a truncation or a deletion."""
        return await self.session.truncations.get()

    async def calls(self, *calls: ScriptedCall, incomplete: bool = False) -> dict[str, Any]:
        """Call functions; an incomplete response is cancelled after its last call."""
        response = await self._open_response()
        ids = []
        for number, call in enumerate(calls, 1):
            self._call_count += 1
            ids.append(call.id or f"call_{self._call_count}")
            text = (
                call.arguments if isinstance(call.arguments, str) else orjson.dumps(call.arguments).decode()
            )
            is_cut = incomplete and number == len(calls)
            await response.send_call(ids[-1], call.tool, text, "incomplete" if is_cut else "completed")
        if incomplete:
            await self.session.cancel_response("turn_detected")
            return {}
        for call_id in ids:
            self.session.expect_output(call_id)
        await self._finish(response)
        return {call_id: await self._output(call_id) for call_id in ids}

    async def cancels(self, *ids: str) -> None:  # noqa: ARG002
        """Raise: the protocol has no such message."""
        raise UnsupportedStepError("the Realtime API cannot cancel calls; use calls(..., incomplete=True)")

    async def results(self, *ids: str) -> dict[str, Any]:
        """Wait for the latest output of each call."""
        return {call_id: await self._output(call_id, again=True) for call_id in ids}

    async def goes_away(self, seconds: float) -> None:
        """Send the session's expiry time."""
        self.session.config["expires_at"] = int(time.time() + seconds)
        await self.session.socket.send("session.updated", session=self.session.config)

    async def fails(self, code: str, message: str = "") -> None:
        """Fail the active response, or send the error alone; `session_expired` also closes the connection."""
        error = error_body(code, message)
        if self.session.active is not None and code != "session_expired":
            response = await self._open_response()
            self.session.active = None
            await response.finish("failed", {"error": error})
            return
        await self.session.socket.send("error", error=error)
        if code == "session_expired":
            await self.session.socket.close(1001, "session_expired")

    async def closes(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection."""
        await self.session.socket.close(code, reason)

    async def _start_speech(self) -> None:
        if self._speaking_item:
            return
        self._speaking_item = self.session.socket.new_id("item")
        await self.session.socket.send(
            "input_audio_buffer.speech_started", item_id=self._speaking_item, audio_start_ms=0
        )
        if self.session.turn_detection.get("interrupt_response"):
            await self.session.cancel_response("turn_detected")

    async def _next_response(self) -> RealtimeResponse:
        while (response := await self.session.responses.get()).complete:
            pass
        return response

    async def _open_response(self) -> RealtimeResponse:
        response, self._current = self._current or await self._next_response(), None
        return response

    async def _finish(self, response: RealtimeResponse) -> None:
        self.session.record_length(response)
        if self.session.active is response:
            self.session.active = None
        await response.finish()

    async def _output(self, call_id: str, *, again: bool = False) -> Any:
        """Return the next output that has not been read; with `again`, the latest one."""
        outputs = self.session.outputs
        wanted = self._outputs_read.get(call_id, 0) + (0 if again and outputs.get(call_id) else 1)
        async with self.session.changed:
            await self.session.changed.wait_for(lambda: len(outputs.get(call_id, ())) >= wanted)
        self._outputs_read[call_id] = wanted
        return orjson.loads(outputs[call_id][wanted - 1])
