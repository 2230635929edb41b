"""One conversation: the model decides, our code checks the arguments, asks, calls and tells the result."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from jackfield.contract.call import ToolCall
from jackfield.transport.events import ToolCalls
from jackfield.transport.protocol import Opening, ToolResult, TransportError

from jackfield_local.agent.answers import Manner, ask_for, records_in, tell_failure, tell_result, title_of
from jackfield_local.agent.decision import Decision, answer_schema, read_decision, written_call
from jackfield_local.agent.engine import Message, Model, Prefix
from jackfield_local.agent.grounding import Grounded, ground
from jackfield_local.agent.parameters import Kind, Parameter, Tool
from jackfield_local.agent.prompt import question_line, waiting_line
from jackfield_local.agent.speech import Speech
from jackfield_local.agent.times import day_of
from jackfield_local.agent.values import is_search, patterned
from jackfield_local.language.questions import asks_for_facts, is_question
from jackfield_local.language.shifts import shift
from jackfield_local.mind import Dialogue, Thought, Words

_log = logging.getLogger(__name__)

_TURNS = 3
"""Exchanges that the model is shown; each costs time to process."""

_MOST_TOKENS = 160
_LONGEST = 600
"""Characters of a message that the model is shown."""

_SEEN = 20_000
_ATTEMPTS = 2
_SHOWN_RECORDS = 5
_ABOUT = 0.15
"""Words that give a tool none of its values are about it if they are at least so near to its examples."""

_CLEARLY_ABOUT = 0.3
"""The same for a tool that needs no value, which is called at once."""

_CHANGE = 10
"""Words of a message that changes an open card, at most."""

_FOLLOW_UP = 6
"""Words of a message that goes on with a call that was made, such as "and tomorrow?", at most."""

_APPROVED = re.compile(r"^The user approved the call of (\w+)[^{]*(\{.*\})\s*$", re.DOTALL)
_ANSWERED = re.compile(r"^\[?(?:The answer to the call of|called) (\w+)[^{]*(\{.*\})\]?\s*$", re.DOTALL)
_DECLINED = re.compile(r"^The user (?:declined|did not decide about) the call of (\w+)")
_CLAIM = re.compile(r"\bI(?:['\u2019]ve| have| just|['\u2019]ll| will| am going to)\b", re.IGNORECASE)
"""The model says of itself that it did or will do something; it never did."""

_NO_TOOL = "I have no tool for that."


@dataclass(frozen=True)
class _Proposal:
    """The last call: what it was, and whether it still waits for the user's approval."""

    tool: Tool
    args: Mapping[str, Any]
    waiting: bool = False
    recent: bool = True
    """Whether it belongs to the turn before this one."""
    replaces: bool = False
    """Whether it was made in the place of one that still waits."""


@dataclass(frozen=True)
class _Question:
    """A value that the user was asked for."""

    tool: Tool
    args: Mapping[str, Any]
    parameter: Parameter
    text: str
    said: str
    """All that the user said for this call so far, the last words first."""
    attempts: int = 1


class _Turn(NamedTuple):
    said: str
    written: str


@dataclass(frozen=True)
class Setting:
    """What the conversations of a registry share."""

    tools: tuple[Tool, ...]
    prefix: Prefix
    model: Model
    manner: Manner
    clock: Callable[[], datetime]
    zone: str = ""


class AgentDialogue:
    """Answers with the model as soon as it is ready, and with `fallback` until then."""

    def __init__(self, opening: Opening, setting: Setting, fallback: Dialogue) -> None:
        self._setting = setting
        self._fallback = fallback
        self._schema = answer_schema(setting.tools)
        self._turns: deque[_Turn] = deque(maxlen=_TURNS)
        self._question: _Question | None = None
        self._last: _Proposal | None = None
        self._records: tuple[Mapping[str, Any], ...] = ()
        self._seen = ""
        self._asked = self._said = ""
        self._learned = ""
        self._by_fallback = False
        self._explained = False
        for each in opening.history:
            if each.speaker == "assistant":
                self._recall(each.text)

    async def answer(self, text: str) -> AsyncIterator[Thought]:
        """The user said this."""
        model, prefix = self._setting.model, self._setting.prefix
        self._by_fallback = not model.is_ready(prefix)
        if self._by_fallback:
            if not self._explained and not self._setting.manner.spoken:
                self._explained = True
                yield Words(
                    f"(The language model is getting ready: {model.progress(prefix):.0%}. "
                    "Until then a simpler planner answers.)\n\n"
                )
            thoughts = self._by_planner(text)
        else:
            thoughts = self._answer(text.strip())
        async with aclosing(thoughts):
            async for thought in thoughts:
                yield thought

    async def go_on(self, results: Sequence[ToolResult]) -> AsyncIterator[Thought]:
        """The calls of the last message are answered."""
        if self._by_fallback:
            for result in results:
                self._take(result.tool_id, _read(result.envelope))
            async for thought in self._fallback.go_on(results):
                yield thought
            return
        for result in results:
            yield Words(await asyncio.to_thread(self._tell, result.tool_id, _read(result.envelope)))

    def learn(self, text: str) -> None:
        """Context that the user did not say."""
        self._learned = text
        self._recall(text)
        self._fallback.learn(text)

    async def respond(self) -> AsyncIterator[Thought]:
        """Speak of what was last learned."""
        learned, self._learned = self._learned, ""
        if match := _APPROVED.match(learned) or _ANSWERED.match(learned):
            envelope = _read(match.group(2).encode())
            yield Words(await asyncio.to_thread(self._tell, match.group(1), envelope))
        elif _DECLINED.match(learned):
            yield Words("All right, nothing was done.")
        elif learned:
            yield Words(learned)

    def interrupted(self, heard: str) -> None:
        """The last answer was cut short; a question that nobody heard does not wait for an answer."""
        if not heard.strip():
            self._question = None
        self._fallback.interrupted(heard)

    async def _answer(self, text: str) -> AsyncGenerator[Thought, None]:
        if not text:
            return
        question, self._question = self._question, None
        self._said = text
        # Sentence embeddings take a while; the event loop must not wait for them.
        filled = await asyncio.to_thread(self._filled, question, text) if question is not None else None
        if question is not None and filled is not None:
            self._note(text, question.tool, filled.args)
            yield self._act(question.tool, filled, question)
            return
        try:
            decision = await self._decide(text, question)
        except TransportError as error:
            _log.warning("the planner answers, as the model could not: %s", error)
            self._by_fallback = True
            async with aclosing(self._by_planner(text)) as thoughts:
                async for thought in thoughts:
                    yield thought
            return
        yield await asyncio.to_thread(self._carry_out, decision, text, question)

    async def _by_planner(self, text: str) -> AsyncGenerator[Thought, None]:
        said = ""
        try:
            async for thought in self._fallback.answer(text):
                said += thought.text if isinstance(thought, Words) else ""
                yield thought
        finally:
            # The model has to know of it when it takes over.
            self._turns.append(_Turn(text[:_LONGEST], orjson.dumps({"say": said[:_LONGEST]}).decode()))

    def _carry_out(self, decision: Decision | None, text: str, question: _Question | None) -> Thought:
        last = self._last
        if (decision is None or decision.tool is None) and last is not None and shift(text) is not None:
            decision = Decision(last.tool, {})
        if decision is not None and decision.refused and (tool := self._identified(text)) is not None:
            decision = Decision(tool, {})
        if (decision is None or decision.refused) and asks_for_facts(text) and (search := self._search()):
            decision = Decision(search, {})
        if decision is None:
            return Words(_NO_TOOL)
        if decision.tool is None:
            self._last = replace(last, recent=False) if last is not None else None
            self._turns.append(_Turn(text[:_LONGEST], orjson.dumps({"say": decision.text}).decode()))
            return Words(self._words(decision, text))
        tool, raw = decision.tool, decision.args or {}
        found = self._grounded(tool, raw, text, question)
        self._turns.append(_Turn(text[:_LONGEST], written_call(tool.id, raw)))
        self._asked = text
        if question is None and not self._is_meant(tool, raw, found, text):
            search = self._search() if asks_for_facts(text) else None
            if search is None:
                return Words(_NO_TOOL)
            tool, found = search, ground(search, {}, self._speech(text))
        return self._act(tool, found, question)

    def _is_meant(self, tool: Tool, raw: Mapping[str, Any], found: Grounded, text: str) -> bool:
        """Whether a tool can be what the user means: its values were said, or the words are about it."""
        if found.missing is not None and found.missing.kind in (Kind.RECORDS, Kind.OBJECT):
            return False  # Nobody can be asked for these.
        own = self._setting.zone
        if not all(_is_zone(tool, name) and value == own for name, value in found.args.items()):
            return True
        if not tool.required and not raw:
            return True
        texts = [tool.description, *(each.says for each in tool.guide.examples)]
        embed = self._setting.manner.embed
        near = float((embed(texts) @ embed([text])[0]).max())
        return near >= (_ABOUT if tool.required else _CLEARLY_ABOUT)

    def _identified(self, text: str) -> Tool | None:
        """The only tool that takes an identifier of the form that stands in a text."""
        fits = [
            tool
            for tool in self._setting.tools
            if tool.required
            and all(each.kind is Kind.IDENTIFIER and patterned(each, text) for each in tool.required)
        ]
        return fits[0] if len(fits) == 1 else None

    def _grounded(
        self, tool: Tool, raw: Mapping[str, Any], text: str, question: _Question | None
    ) -> Grounded:
        """The arguments; those of an open question or of the last call complete what the words change."""
        speech = self._speech(text)
        if question is not None and question.tool is tool:
            speech = replace(speech, before=question.said)
            asked = question.parameter
            if asked.kind is Kind.TEXT and not raw and not is_question(text):
                raw = {**raw, asked.name: text}
            return ground(tool, raw, speech, question.args)
        found = ground(tool, raw, speech)
        last = self._last
        if last is None or last.tool is not tool:
            return found
        complete = found.missing is None and not found.unusable and shift(text) is None
        if complete or not _is_change(last, found, text):
            return found
        return ground(tool, raw, replace(speech, earlier=()), last.args)

    def _filled(self, question: _Question, text: str) -> Grounded | None:
        """The reply to a question, where its type alone tells the value."""
        parameter = question.parameter
        if parameter.kind is Kind.TEXT or is_question(text):
            return None
        raw = {parameter.name: [text] if parameter.many else text}
        speech = replace(self._speech(text), earlier=(), before=question.said)
        found = ground(question.tool, raw, speech, question.args)
        return found if found.args.get(parameter.name) != question.args.get(parameter.name) else None

    def _act(self, tool: Tool, found: Grounded, question: _Question | None) -> Thought:
        if found.missing is not None and question is None and (search := self._search_for(found.missing)):
            parameter = search.required[0]
            found, tool = Grounded({parameter.name: self._asked}), search
        if found.missing is not None:
            return Words(self._ask(tool, found, question))
        last = self._last
        if last is not None and last.waiting and last.tool is tool and dict(last.args) == dict(found.args):
            names = ", ".join(each.spoken for each in tool.parameters if each.required)
            return Words(
                f"Nothing has changed: the card still waits for your approval. What should change ({names})?"
            )
        replaces = last is not None and last.waiting and last.tool is tool
        self._last = _Proposal(tool, found.args, replaces=replaces)
        call = ToolCall(tool.id, orjson.dumps(dict(found.args)).decode(), f"local-{secrets.token_hex(8)}")
        return ToolCalls((call,))

    def _search(self) -> Tool | None:
        """The first tool that takes a question as it was asked."""
        return next((each for each in self._setting.tools if is_search(each)), None)

    def _search_for(self, missing: Parameter) -> Tool | None:
        """The search that finds an identifier which the user cannot know: its description names it."""
        if missing.kind is not Kind.IDENTIFIER:
            return None
        tools = self._setting.tools
        return next((each for each in tools if each.id in missing.description and is_search(each)), None)

    def _ask(self, tool: Tool, found: Grounded, question: _Question | None) -> str:
        parameter = found.missing
        assert parameter is not None  # noqa: S101 - asked only where something is missing
        # Who answers something else about the call has brought it further, and may be asked again.
        stuck = question is not None and question.tool is tool and dict(question.args) == dict(found.args)
        attempts = question.attempts + 1 if question is not None and stuck else 1
        if attempts > _ATTEMPTS:
            return f"I cannot go on without the {parameter.spoken}. Ask again when you have it."
        text = ask_for(parameter, found.unusable)
        same = question is not None and question.tool is tool
        said = f"{self._said}\n{question.said}" if question is not None and same else self._said
        self._question = _Question(tool, found.args, parameter, text, said, attempts)
        return text

    async def _decide(self, text: str, question: _Question | None) -> Decision | None:
        messages = []
        for turn in self._turns:
            messages += [Message("user", turn.said), Message("assistant", turn.written)]
        messages.append(Message("user", self._context(question) + text[:_LONGEST]))
        setting = self._setting
        written = await setting.model.complete(
            setting.prefix, messages, schema=self._schema, max_tokens=_MOST_TOKENS
        )
        return read_decision(written, setting.tools)

    def _context(self, question: _Question | None) -> str:
        """What the model has to know besides the words: an open question, an open card, the last results."""
        lines = []
        if question is not None:
            lines.append(question_line(question.text))
        if self._last is not None and self._last.waiting:
            lines.append(waiting_line(self._last.tool.id, self._last.args))
        shown = [
            f"{place}. {title_of(each)[:60]} ({each['id']})"
            for place, each in enumerate(self._records[:_SHOWN_RECORDS], 1)
            if isinstance(each.get("id"), str)
        ]
        if shown:
            lines.append(f"[Results: {'; '.join(shown)}]\n")
        return "".join(lines)

    def _speech(self, text: str) -> Speech:
        setting = self._setting
        return Speech(
            text,
            setting.clock(),
            setting.manner.embed,
            tuple(turn.said for turn in self._turns),
            setting.zone,
            self._records,
            day=day_of(self._last.args) if self._last is not None and self._last.recent else None,
            seen=self._seen,
        )

    def _words(self, decision: Decision, text: str) -> str:
        if decision.helps:
            return self._help()
        if decision.refused:
            return f"I cannot {decision.text.rstrip('.')}: no tool here does that."
        numbers = set(re.findall(r"\d+", decision.text)) - set(re.findall(r"\d+", text))
        # A fact or a deed that the model made up is worse than no answer.
        return _NO_TOOL if numbers or _CLAIM.search(decision.text) else decision.text

    def _help(self) -> str:
        purposes = [each.purpose for each in self._setting.tools]
        if self._setting.manner.spoken:
            return f"I have {len(purposes)} tools. For example: {'; '.join(purposes[:3])}."
        return "This is what I can do:\n" + "\n".join(f"- {each}." for each in purposes)

    def _note(self, text: str, tool: Tool, args: Mapping[str, Any]) -> None:
        self._turns.append(_Turn(text[:_LONGEST], written_call(tool.id, args)))

    def _recall(self, text: str) -> None:
        if match := _APPROVED.match(text) or _ANSWERED.match(text):
            self._take(match.group(1), _read(match.group(2).encode()))
        elif _DECLINED.match(text):
            self._last = None

    def _take(self, tool_id: str, envelope: Mapping[str, Any]) -> None:
        """Remember what a call came to."""
        error = envelope.get("error")
        if self._last is not None and self._last.tool.id == tool_id:
            waiting = isinstance(error, Mapping) and error.get("type") == "CONFIRMATION_REQUIRED"
            self._last = replace(self._last, waiting=waiting)
        if not error:
            self._records = records_in(envelope.get("data")) or self._records
            self._seen = (self._seen + orjson.dumps(envelope.get("data")).decode())[-_SEEN:]

    def _tell(self, tool_id: str, envelope: Mapping[str, Any]) -> str:
        self._take(tool_id, envelope)
        error = envelope.get("error")
        if isinstance(error, Mapping):
            if error.get("type") == "CONFIRMATION_REQUIRED":
                replaces = self._last is not None and self._last.replaces
                before = " The card before it waits as well: decline that one." if replaces else ""
                return f"This waits for your approval; nothing has been done yet.{before}"
            return tell_failure(error)
        return tell_result(envelope.get("data"), self._asked, self._setting.manner)


def _read(envelope: bytes) -> Mapping[str, Any]:
    try:
        found = orjson.loads(envelope)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"error": {"message": "The tool's answer cannot be read."}}


def _is_zone(tool: Tool, name: str) -> bool:
    parameter = tool.parameter(name)
    return parameter is not None and parameter.kind is Kind.ZONE


def _is_change(last: _Proposal, found: Grounded, text: str) -> bool:
    """Whether words change the last call, rather than begin another one of which something is missing."""
    given = sum(each.name in found.args for each in last.tool.required)
    few = len(text.split()) <= (_CHANGE if last.waiting else _FOLLOW_UP)
    return few or shift(text) is not None or (last.waiting and given * 2 <= len(last.tool.required))
