"""Scripts played by a dialogue in this process, with predictable speech engines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import TextDelta, ToolCalls
from jackfield.transport.protocol import ConnectionConfig, ToolResult
from jackfield_local.connection import AnswerPart
from jackfield_local.voice.engines import Samples, SpeechEngines
from jackfield_scripted import ScriptedCall, ScriptedModel, UnsupportedStepError, UserInput, split_text
from jackfield_scripted.audio import tone

WORD_MS = 60


class LoudIsSpeech:
    """A detector for which everything that can be heard is speech."""

    def __call__(self, frame: bytes) -> float:
        return 1.0 if int(np.abs(np.frombuffer(frame, "<i2").astype(np.int32)).max()) > 200 else 0.0


class LocalModel(ScriptedModel):
    """Plays one script as a dialogue; it is also the recogniser and the synthesiser of its connection."""

    def __init__(self, opening: ConnectionConfig) -> None:
        self._opening = opening
        self._received: list[Mapping[str, Any]] = [
            {"said": said.speaker, "text": said.text} for said in opening.history
        ]
        self._asked: asyncio.Queue[str | Sequence[ToolResult]] = asyncio.Queue()
        self._parts: asyncio.Queue[AnswerPart | None] = asyncio.Queue()
        self._transcript = ""
        self._lengths: dict[str, int] = {}
        self._ids = 0
        self.heard_ms = 0

    @property
    def engines(self) -> SpeechEngines:
        return SpeechEngines(LoudIsSpeech, self.transcribe, self.synthesise)

    @property
    def instructions(self) -> str:
        return self._opening.instructions

    @property
    def tools(self) -> Mapping[str, Any]:
        return self._opening.declarations

    @property
    def received(self) -> list[Mapping[str, Any]]:
        return self._received

    # As engines.

    def transcribe(self, samples: Samples) -> str:
        self.heard_ms = len(samples) // 16
        return self._transcript

    def synthesise(self, text: str) -> bytes:
        return tone(self._lengths.get(text, WORD_MS * len(text.split())))

    # As a dialogue.

    def answer(self, text: str) -> AsyncIterator[AnswerPart]:
        self._received.append({"user": text})
        return self._answer_parts(text)

    def continue_with(self, results: Sequence[ToolResult]) -> AsyncIterator[AnswerPart]:
        self._received.append({"results": [each.envelope.decode() for each in results]})
        return self._answer_parts(results)

    def submit_form(self, tool_id: str, values: Mapping[str, Any]) -> AsyncIterator[AnswerPart]:
        raise UnsupportedStepError(f"a form of {tool_id} in a conversation by voice")

    def respond(self) -> AsyncIterator[AnswerPart]:
        return self._answer_parts("")

    def add_context(self, text: str) -> None:
        self._received.append({"context": text})

    def interrupted(self, *, heard: bool) -> None:
        self._received.append({"interrupted": heard})

    async def _answer_parts(self, asked: str | Sequence[ToolResult]) -> AsyncIterator[AnswerPart]:
        self._parts = asyncio.Queue()
        self._asked.put_nowait(asked)
        while (part := await self._parts.get()) is not None:
            yield part

    # As a script.

    async def hears(self) -> UserInput:
        asked = await self._asked.get()
        return UserInput(text=asked if isinstance(asked, str) else "")

    async def hears_speech(self, transcript: str, *, after_ms: int = 200) -> UserInput:
        self._transcript = transcript
        await self._asked.get()
        return UserInput(transcript, self.heard_ms)

    async def says(self, text: str, *, pieces: int = 3) -> None:
        for piece in split_text(text, pieces):
            self._parts.put_nowait(TextDelta(piece))
        self._parts.put_nowait(None)

    async def speaks(self, text: str, *, ms: int) -> None:
        self._lengths[text] = ms
        self._parts.put_nowait(TextDelta(text + " "))

    async def ends_speaking(self) -> None:
        self._parts.put_nowait(None)

    async def calls(self, *calls: ScriptedCall, incomplete: bool = False) -> dict[str, Any]:
        if incomplete:
            raise UnsupportedStepError("a local dialogue makes its calls or does not")
        self._parts.put_nowait(ToolCalls(tuple(self._call(call) for call in calls)))
        results = await self._asked.get()
        assert not isinstance(results, str)
        return {each.call_id: orjson.loads(each.envelope) for each in results}

    def _call(self, call: ScriptedCall) -> ToolCall:
        self._ids += 1
        text = call.arguments if isinstance(call.arguments, str) else orjson.dumps(call.arguments)
        return ToolCall(call.tool, text, call.id or f"call-{self._ids}")

    async def is_interrupted(self) -> None:
        raise UnsupportedStepError("the user's voice interrupts, not the dialogue")

    async def truncated(self) -> int:
        raise UnsupportedStepError("a dialogue is told whether it was heard, not milliseconds")

    async def cancels(self, *ids: str) -> None:
        raise UnsupportedStepError("calls are not taken back")

    async def results(self, *ids: str) -> dict[str, Any]:
        raise UnsupportedStepError("a dialogue that called waits")

    async def goes_away(self, seconds: float) -> None:
        raise UnsupportedStepError("a dialogue in this process stays")

    async def fails(self, code: str, message: str = "") -> None:
        raise UnsupportedStepError("there is no provider")

    async def closes(self, code: int = 1000, reason: str = "") -> None:
        raise UnsupportedStepError("there is no provider")
