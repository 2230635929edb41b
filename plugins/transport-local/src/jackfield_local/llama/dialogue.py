"""One conversation of the language model: it chooses and speaks, the planner fills in and keeps count."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from jackfield.transport.protocol import Opening, TransportError, Utterance

from jackfield_local.llama import briefing, speaking
from jackfield_local.llama.choosing import Led, choose
from jackfield_local.llama.engine import Brief, Message, Writer
from jackfield_local.mind import Thought, Words
from jackfield_local.planner.deciding.moves import Call, Move, Question, Say
from jackfield_local.planner.dialogue import ANSWERED, Grounds, PlannerDialogue
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.telling.told import Told

_log = logging.getLogger(__name__)

TURNS = 3
"""How many exchanges the model is reminded of; every one costs time to read."""

_LONGEST = 300
"""Characters of an earlier message that the model is reminded of."""

_REMEMBERED = 12
"""So many utterances of an earlier connection are looked at."""

_HANDED = 120
"""Characters of a text that was handed over: enough to see what it is."""


class _Turn(NamedTuple):
    """What was said, which tool it led to, and what was answered in words."""

    asked: str
    tool_id: str | None
    answered: str = ""


class LlamaDialogue(PlannerDialogue):
    """Has the model's word on which tool is meant, and says what is free to be said in the model's words."""

    def __init__(self, opening: Opening, grounds: Grounds, model: Writer, brief: Brief | None) -> None:
        super().__init__(opening, grounds)
        self._model = model
        self._brief = brief
        self._turns: deque[_Turn] = deque(_turns(opening.history), maxlen=TURNS)
        # That it is a model and not a planner needs no first words.
        self._introduced = True

    def interrupted(self, heard: str) -> None:
        """The last answer was cut short after these words."""
        super().interrupted(heard)
        if self._turns:
            self._turns.append(self._turns.pop()._replace(answered=heard[:_LONGEST]))

    async def _decide(self, heard: Heard, question: Question | None) -> Move:
        move = await super()._decide(heard, question)
        # What answers a question, and plain small talk, are clear without the model.
        if question is None and not _is_talk(move):
            move = await self._led(heard, move)
        self._turns.append(_Turn(_shortened(heard), _meant(move)))
        return move

    async def _led(self, heard: Heard, planned: Move) -> Move:
        if self._brief is None:
            return planned
        asked = [Message("user", _shortened(heard))]
        for turn in reversed(self._turns):
            asked[:0] = [Message("user", turn.asked), briefing.choice(turn.tool_id)]
        try:
            chosen = await choose(self._model, self._brief, asked, self._judgement.tools)
        except TransportError as error:
            _log.warning("the planner chose, as the model could not: %s", error)
            return planned
        judgement, remembered = self._judgement.led_by(partial(Led, chosen)), self._remembered
        return await self._off(lambda: judgement.decide(heard, remembered))

    async def _carry_out(self, move: Move) -> AsyncGenerator[Thought, None]:
        free = isinstance(move, Say) and move.free
        said = self._chat(move.text) if isinstance(move, Say) and free else super()._carry_out(move)
        async with aclosing(said) as thoughts:
            async for thought in thoughts:
                yield thought

    async def _chat(self, instead: str) -> AsyncGenerator[Thought, None]:
        *earlier, last = self._turns
        asked = []
        for turn in earlier:
            if turn.answered:
                asked += [Message("user", turn.asked), Message("assistant", turn.answered)]
        asked.append(briefing.chatting(last.asked, self._clock(), self._manners.mode))
        async with aclosing(speaking.chat(self._model, asked, instead)) as pieces:
            async for piece in self._noted(pieces):
                yield piece

    async def _tell(self, told: Told) -> AsyncGenerator[Thought, None]:
        """Everything as the planner tells it, with the model's answer in the place of what is quoted."""
        quoted, question = told.quoted, self._remembered.last_question
        if quoted is None or not question:
            async with aclosing(super()._tell(told)) as thoughts:
                async for thought in thoughts:
                    yield thought
            return
        before, _, after = told.text.partition(quoted.said)
        if before:
            yield Words(before)
        answered = speaking.answer(self._model, question, quoted, self._manners.mode)
        async with aclosing(answered) as sentences:
            async for sentence in self._noted(sentences):
                yield sentence
        yield Words(after)

    async def _noted(self, pieces: AsyncGenerator[str, None]) -> AsyncGenerator[Words, None]:
        """Pieces on their way, remembered as what was answered."""
        async for piece in pieces:
            if self._turns:
                turn = self._turns.pop()
                self._turns.append(turn._replace(answered=(turn.answered + piece)[:_LONGEST]))
            yield Words(piece)


def _turns(history: Sequence[Utterance]) -> Iterator[_Turn]:
    """What was said before, when a conversation goes on in a new connection."""
    turn: _Turn | None = None
    for each in history[-_REMEMBERED:]:
        if each.speaker == "user":
            if turn is not None:
                yield turn
            turn = _Turn(each.text[:_LONGEST], None)
        elif turn is not None and (call := ANSWERED.match(each.text)):
            turn = turn._replace(tool_id=call.group(1))
        elif turn is not None:
            turn = turn._replace(answered=each.text[:_LONGEST])
    if turn is not None:
        yield turn


def _is_talk(move: Move) -> bool:
    return isinstance(move, Say) and move.talk


def _meant(move: Move) -> str | None:
    if isinstance(move, Call):
        return move.tool.id
    return move.tools[0].id if isinstance(move, Question) else None


def _shortened(heard: Heard) -> str:
    """What was said, with no more of a text that was handed over than shows what it is."""
    handed = f": {heard.payload.text[:_HANDED]}" if heard.payload else ""
    return heard.request[:_LONGEST] + handed
