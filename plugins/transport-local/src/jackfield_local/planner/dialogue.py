"""One conversation of the planner: decisions made off the event loop, told as thoughts."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

import orjson
from jackfield.contract.call import ToolCall
from jackfield.transport.events import ToolCalls
from jackfield.transport.protocol import Opening, ToolResult, Utterance

from jackfield_local.mind import Thought, Words
from jackfield_local.planner.deciding.decide import Judgement
from jackfield_local.planner.deciding.moves import Call, Move, Question, Say
from jackfield_local.planner.deciding.several import MOST_WISHES
from jackfield_local.planner.deciding.talking import INTRODUCTION
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.requests import direct, tidied
from jackfield_local.planner.reading.tool import Tool
from jackfield_local.planner.remembered import Made, Remembered
from jackfield_local.planner.telling.deeds import standing
from jackfield_local.planner.telling.failures import tell_failure
from jackfield_local.planner.telling.results import tell
from jackfield_local.planner.telling.told import Manners, Told

_T = TypeVar("_T")
_APPROVED = re.compile(r"^The user approved the call of (\w+)[^{]*(\{.*\})\s*$", re.DOTALL)
ANSWERED = re.compile(r"^\[?(?:The answer to the call of|called) (\w+)[^{]*(\{.*\})\]?\s*$", re.DOTALL)
"""A call with its answer, as it is told in a history."""

_DECLINED = re.compile(r"^The user declined the call of (\w+)")
_EXACT = re.compile(r"(`[^`]*`|\"[^\"]*\"|(?<!\S)\S*[./\\]\w\S*)")
"""What is left as it is written: quotes, links and paths."""
_PIECE = re.compile(r".+?(?:[.!?:]\s+|\n+|$)", re.DOTALL)


class Grounds(NamedTuple):
    """What a conversation stands on; its work is done in the threads of the executor."""

    judgement: Judgement
    manners: Manners
    clock: Callable[[], datetime]
    executor: Executor


class PlannerDialogue:
    """Keeps what was found and what was asked, and says of itself what it is, once."""

    def __init__(self, opening: Opening, grounds: Grounds) -> None:
        self._judgement, self._manners, self._clock, self._executor = grounds
        self._remembered = Remembered()
        self._question: Question | None = None
        self._then: Tool | None = None
        self._waiting: deque[str] = deque()
        """What else was wished for in the last message."""
        self._left_out: list[str] = []
        self._learned = ""
        self._introduced = any(each.speaker == "assistant" for each in opening.history)
        self._recall(opening.history)

    async def answer(self, text: str) -> AsyncIterator[Thought]:
        """The user said this: one wish, or several that are served in turn."""
        question, self._question, self._then = self._question, None, None
        self._remembered.going_on = False
        said = text.strip() if question is not None and question.exact else _request(text)
        if not said:
            return
        if question is None:
            heard = self._heard(said)
            said, *rest = await self._off(lambda: self._judgement.wishes(heard, self._remembered))
            self._waiting = deque(rest[: MOST_WISHES - 1])
            self._left_out = rest[MOST_WISHES - 1 :]
        async with aclosing(self._serve(said, question)) as thoughts:
            async for thought in thoughts:
                yield thought

    async def go_on(self, results: Sequence[ToolResult]) -> AsyncIterator[Thought]:
        """The calls of the last message are answered."""
        for result in results:
            envelope = _read(result.envelope)
            told = await self._off(partial(self._told, result.tool_id, envelope))
            self._remembered.found(told.items)
            then, self._then = self._then, None
            if then is not None and told.items:
                async for thought in self._fetch(then, told):
                    yield thought
                return
            async with aclosing(self._tell(told)) as thoughts:
                async for thought in thoughts:
                    yield thought
        async with aclosing(self._next()) as thoughts:
            async for thought in thoughts:
                yield thought

    def learn(self, text: str) -> None:
        """Context that the user did not say; results that come so can be referred to."""
        self._learned = text
        self._recall((Utterance("assistant", text),))

    async def respond(self) -> AsyncIterator[Thought]:
        """Speak of what was last learned."""
        learned, self._learned = self._learned, ""
        if match := _APPROVED.match(learned) or ANSWERED.match(learned):
            tool_id, envelope = match.group(1), _read(match.group(2).encode())
            told = await self._off(partial(self._told, tool_id, envelope))
            self._remembered.found(told.items)
        elif declined := _DECLINED.match(learned):
            self._remembered.stands(declined.group(1), "")
            told = Told("All right, nothing was done.")
        else:
            told = Told(f"I was told this: {learned}" if learned else "There is nothing new.")
        async with aclosing(self._tell(told)) as thoughts:
            async for thought in thoughts:
                yield thought

    def interrupted(self, heard: str) -> None:
        """The last answer was cut short; a question that nobody heard is not waiting for an answer."""
        self._waiting.clear()
        self._left_out = []
        if self._question is not None and not heard.strip():
            self._question = None

    def _heard(self, said: str) -> Heard:
        remembered = self._remembered
        same_day = remembered.going_on or remembered.looked_at
        return Heard(said, self._clock(), remembered.spoken_of, same_day=same_day)

    async def _serve(self, said: str, question: Question | None) -> AsyncGenerator[Thought, None]:
        move = await self._decide(self._heard(said), question)
        if question is not None and (isinstance(move, Say) or not _goes_on(move, question)):
            self._waiting.clear()  # Who turns to something else has left what was to follow.
        self._remembered.lost = isinstance(move, Say) and (move.lost or (move.talk and self._remembered.lost))
        self._remembered.listed |= isinstance(move, Say) and move.lists
        async with aclosing(self._carry_out(move)) as thoughts:
            async for thought in thoughts:
                yield thought
        if isinstance(move, Say):
            async with aclosing(self._next()) as thoughts:
                async for thought in thoughts:
                    yield thought

    async def _next(self) -> AsyncGenerator[Thought, None]:
        """The wish that was said in one breath with the one that is served."""
        if not self._waiting:
            if self._left_out:
                left, self._left_out = self._left_out, []
                yield Words(
                    f"{self._manners.gap}That is all for one message. Say this again: {'; '.join(left)}"
                )
            return
        self._remembered.going_on = True
        yield Words(self._manners.gap)
        async with aclosing(self._serve(self._waiting.popleft(), None)) as thoughts:
            async for thought in thoughts:
                yield thought

    async def _decide(self, heard: Heard, question: Question | None) -> Move:
        remembered = self._remembered
        if question is None:
            return await self._off(lambda: self._judgement.decide(heard, remembered))
        return await self._off(lambda: self._judgement.resolve(question, heard, remembered))

    async def _carry_out(self, move: Move) -> AsyncGenerator[Thought, None]:
        if isinstance(move, Call):
            async for thought in self._introduce():
                yield thought
            if move.remark:
                yield Words(move.remark + self._manners.gap)
            yield self._call(move)
            return
        if isinstance(move, Question):
            self._question = move
        elif move.warns_of:
            self._remembered.warned_of.add(move.warns_of)
        async for thought in self._say(move.text):
            yield thought

    def _call(self, call: Call) -> ToolCalls:
        remembered = self._remembered
        # What is found and opened in one breath is opened for what was looked for.
        opened = remembered.going_on and remembered.referred(call.question) is not None
        asked = f"{remembered.last_question} {call.question}" if opened else call.question
        self._then = call.then
        before = Made(remembered.last_tool, remembered.last_args, remembered.made)
        self._remembered = replace(
            remembered,
            last_tool=call.tool.id,
            last_args=call.args,
            last_question=asked,
            earlier=(*remembered.earlier, before) if remembered.going_on else (),
            lost=False,
            made="",
        )
        made = ToolCall(call.tool.id, orjson.dumps(dict(call.args)).decode(), f"local-{secrets.token_hex(8)}")
        return ToolCalls((made,))

    async def _fetch(self, then: Tool, told: Told) -> AsyncIterator[Thought]:
        """Take the id of what was found to the tool that fetches it whole."""
        parameter = then.required[0]
        best = self._remembered.referred(self._remembered.last_question) or told.items[0]
        found = self._remembered.gives(best, parameter)
        if found is None:
            async with aclosing(self._tell(told)) as thoughts:
                async for thought in thoughts:
                    yield thought
            return
        yield self._call(Call(then, {parameter.name: found}, self._remembered.last_question))

    async def _tell(self, told: Told) -> AsyncGenerator[Thought, None]:
        async for thought in self._say(told.text):
            yield thought

    def _told(self, tool_id: str, envelope: Any) -> Told:
        if not isinstance(envelope, dict):
            return Told("The answer could not be read.")
        self._remembered.stands(tool_id, standing(envelope, self._manners))
        if envelope.get("ok"):
            return tell(envelope.get("data"), self._remembered.last_question, self._manners)
        error = envelope.get("error")
        return Told(tell_failure(tool_id, error if isinstance(error, dict) else {}))

    async def _introduce(self) -> AsyncIterator[Thought]:
        if not self._introduced:
            self._introduced = True
            yield Words(INTRODUCTION[self._manners.mode] + self._manners.gap)

    async def _say(self, text: str) -> AsyncIterator[Thought]:
        async for thought in self._introduce():
            yield thought
        for piece in _PIECE.findall(text):
            yield Words(piece)

    def _recall(self, history: Sequence[Utterance]) -> None:
        """What tools found in an earlier connection can still be referred to."""
        for each in history:
            match = ANSWERED.match(each.text)
            if match and isinstance(envelope := _read(match.group(2).encode()), dict) and envelope.get("ok"):
                self._remembered.found(tell(envelope.get("data"), "", self._manners).items)

    async def _off(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def _goes_on(move: Call | Question, question: Question) -> bool:
    """Whether a move is about the call that a question was asked for."""
    return (move.tool if isinstance(move, Call) else move.tools[0]) in question.tools


def _request(text: str) -> str:
    """The first line tidied; what is handed over below it stays as it is."""
    head, line, rest = text.strip().partition("\n")
    before, colon, after = head.partition(": ")
    parts = _EXACT.split(before)
    before = "".join(part if place % 2 else tidied(part) for place, part in enumerate(parts))
    return direct(f"{before}{colon}{after}{line}{rest}")


def _read(envelope: bytes) -> Any:
    try:
        return orjson.loads(envelope)
    except orjson.JSONDecodeError:
        return None
