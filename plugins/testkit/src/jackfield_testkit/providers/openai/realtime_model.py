"""The model behind the Realtime API."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson

from jackfield_testkit.providers.audio import milliseconds
from jackfield_testkit.providers.model import Call, Heard, NotOnThisProtocolError, ScriptedModel, cut
from jackfield_testkit.providers.openai.realtime_response import Response
from jackfield_testkit.providers.openai.realtime_session import RealtimeSession
from jackfield_testkit.providers.openai.violations import error_body

_MS_A_WORD = 60


class RealtimeModel(ScriptedModel):
    """Plays one session."""

    def __init__(self, session: RealtimeSession) -> None:
        self.session = session
        self._current: Response | None = None
        self._made = 0
        self._taken: dict[str, int] = {}
        self._speaking_item = ""

    @property
    def instructions(self) -> str:
        """As the session has them now."""
        return str(self.session.config.get("instructions", ""))

    @property
    def tools(self) -> Mapping[str, Any]:
        """The functions of the session."""
        return {each["name"]: each for each in self.session.config.get("tools") or ()}

    @property
    def received(self) -> list[Mapping[str, Any]]:
        """Every client event."""
        return self.session.received

    async def hears(self) -> Heard:
        """Wait for a response that was asked for and not cancelled since."""
        self._current = await self._due()
        text = "\n".join(self.session.texts)
        self.session.texts.clear()
        return Heard(text=text)

    async def hears_speech(self, transcript: str, *, after_ms: int = 200) -> Heard:
        """Wait for so much sound and go through what voice activity detection does."""
        session = self.session
        if not session.webrtc:
            async with session.changed:
                await session.changed.wait_for(lambda: milliseconds(session.buffered) >= after_ms)
        heard = after_ms if session.webrtc else milliseconds(session.buffered)
        await self._starts_speaking()
        item, self._speaking_item = self._speaking_item, ""
        wire = session.wire
        await wire.send("input_audio_buffer.speech_stopped", item_id=item, audio_end_ms=heard)
        await session.add_speech(item)
        if session.turn_detection.get("create_response"):
            await session.begin()
        self._current = await self._due()
        await self._write_down(item, transcript)
        return Heard(transcript, heard)

    async def _write_down(self, item: str, transcript: str) -> None:
        if not (self.session.config.get("audio") or {}).get("input", {}).get("transcription"):
            return
        place = {"item_id": item, "content_index": 0}
        kind = "conversation.item.input_audio_transcription"
        for piece in cut(transcript, 2):
            await self.session.wire.send(f"{kind}.delta", **place, delta=piece)
        usage = {"type": "tokens", "input_tokens": 3, "output_tokens": 3, "total_tokens": 6}
        await self.session.wire.send(f"{kind}.completed", **place, transcript=transcript, usage=usage)

    async def says(self, text: str, *, pieces: int = 3) -> None:
        """Speak an answer and end it; quietly stop when it is cancelled."""
        response = await self._take()
        if response.over:
            return
        await response.begin_message()
        parts = cut(text, pieces)
        left = _MS_A_WORD * len(text.split())
        for number, piece in enumerate(parts):
            if response.over:
                return
            await response.words(piece)
            ms = left // (len(parts) - number)
            await response.sound(ms)
            left -= ms
        await self._finish(response)

    async def speaks(self, text: str, *, ms: int) -> None:
        """Begin an answer, or go on with it."""
        response = await self._take()
        self._current = response
        if response.over:
            return
        if not response.item:
            await response.begin_message()
        await response.words(text)
        await response.sound(ms)

    async def ends_speaking(self) -> None:
        """End the answer."""
        if self._current is not None:
            response, self._current = self._current, None
            await self._finish(response)

    async def is_interrupted(self) -> None:
        """Speech begins, and the server cuts its answer short if the session says so."""
        await self._starts_speaking()

    async def truncated(self) -> int:
        """Wait for a truncation or a deletion."""
        return await self.session.truncations.get()

    async def calls(self, *calls: Call, taken_back: bool = False) -> dict[str, Any]:
        """Call functions; taken back means that the response is cancelled after its last call was written."""
        response = await self._take()
        ids = []
        for number, call in enumerate(calls, 1):
            self._made += 1
            ids.append(call.id or f"call_{self._made}")
            text = (
                call.arguments if isinstance(call.arguments, str) else orjson.dumps(call.arguments).decode()
            )
            cut_off = taken_back and number == len(calls)
            await response.call(ids[-1], call.tool, text, "incomplete" if cut_off else "completed")
        if taken_back:
            await self.session.cut_short("turn_detected")
            return {}
        for call_id in ids:
            self.session.expect(call_id)
        await self._finish(response)
        return {call_id: await self._output(call_id) for call_id in ids}

    async def cancels(self, *ids: str) -> None:  # noqa: ARG002
        """There is no such message."""
        raise NotOnThisProtocolError("the Realtime API takes no calls back; use calls(..., taken_back=True)")

    async def results(self, *ids: str) -> dict[str, Any]:
        """Wait for the latest output of each call."""
        return {call_id: await self._output(call_id, again=True) for call_id in ids}

    async def goes_away(self, seconds: float) -> None:
        """Tell when the session expires."""
        self.session.config["expires_at"] = int(time.time() + seconds)
        await self.session.wire.send("session.updated", session=self.session.config)

    async def errs(self, code: str, message: str = "") -> None:
        """Fail the response there is, or report the error by itself; an expired session is closed too."""
        error = error_body(code, message)
        if self.session.active is not None and code != "session_expired":
            response = await self._take()
            self.session.active = None
            await response.finish("failed", {"error": error})
            return
        await self.session.wire.send("error", error=error)
        if code == "session_expired":
            await self.session.wire.close(1001, "session_expired")

    async def closes(self, code: int = 1000, reason: str = "") -> None:
        """End the connection."""
        await self.session.wire.close(code, reason)

    async def _starts_speaking(self) -> None:
        if self._speaking_item:
            return
        self._speaking_item = self.session.wire.new_id("item")
        await self.session.wire.send(
            "input_audio_buffer.speech_started", item_id=self._speaking_item, audio_start_ms=0
        )
        if self.session.turn_detection.get("interrupt_response"):
            await self.session.cut_short("turn_detected")

    async def _due(self) -> Response:
        while (response := await self.session.responses.get()).over:
            pass
        return response

    async def _take(self) -> Response:
        response, self._current = self._current or await self._due(), None
        return response

    async def _finish(self, response: Response) -> None:
        self.session.remember(response)
        if self.session.active is response:
            self.session.active = None
        await response.finish()

    async def _output(self, call_id: str, *, again: bool = False) -> Any:
        """The output that was not given yet, or with `again` the last one."""
        outputs = self.session.outputs
        wanted = self._taken.get(call_id, 0) + (0 if again and outputs.get(call_id) else 1)
        async with self.session.changed:
            await self.session.changed.wait_for(lambda: len(outputs.get(call_id, ())) >= wanted)
        self._taken[call_id] = wanted
        return orjson.loads(outputs[call_id][wanted - 1])
