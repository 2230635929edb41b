"""One conversation: a tool is chosen, its arguments are checked, missing ones asked for, results told."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson
from jackfield.contract.call import ToolCall
from jackfield.transport.events import FormRequest, ToolCalls
from jackfield.transport.protocol import Opening, ToolResult, TransportError

from jackfield_local.agent.answers import (
    Manner,
    ask_for,
    best_record,
    describe_values,
    is_cut_off,
    tell_failure,
    tell_result,
)
from jackfield_local.agent.decider import ModelDecider, context_lines
from jackfield_local.agent.decision import Decision, written_call, written_words
from jackfield_local.agent.grounding import Grounded, find, ground
from jackfield_local.agent.memory import Memory, Proposal, is_declined, outcome_in, read_envelope
from jackfield_local.agent.parameters import Kind, Parameter, Tool, flat, nested
from jackfield_local.agent.router import Act, Router
from jackfield_local.agent.searches import MOST, MOST_SPOKEN, first_search, merged, reading, searches
from jackfield_local.agent.speech import Speech
from jackfield_local.agent.texts import is_handed_over, is_search, reply, unexplained, untyped
from jackfield_local.agent.times import day_of
from jackfield_local.agent.values import patterned
from jackfield_local.language.amounts import amounts
from jackfield_local.language.numbers import ORDINALS, WORDS
from jackfield_local.language.questions import asks_for_facts, is_question
from jackfield_local.language.shifts import shift
from jackfield_local.language.words import stem, stems, words
from jackfield_local.mind import Thought, Words

_log = logging.getLogger(__name__)

_ATTEMPTS = 2
_ABOUT = 0.15
"""Words that give a tool none of its values are about it if they are at least so near to its examples."""

_CLEARLY_ABOUT = 0.3
"""The same for a tool that needs no value, which is called at once."""

_OPTIONS = 3
"""Tools among which the user may choose where none is close enough."""

_CHANGE = 10
"""Words of a message that changes an open card, at most."""

_FOLLOW_UP = 6
"""Words of a message that goes on with a call that was made, such as "and tomorrow?", at most."""

_CLAIM = re.compile(r"\bI(?:['\u2019]ve| have| just|['\u2019]ll| will| am going to)\b", re.IGNORECASE)
"""The model says of itself that it did or will do something; it never did."""

_NO_TOOL = "I have no tool for that."
_TEXT_ONLY = "I can do that only in a text conversation."
_STOPPED = "All right, nothing was done."
_REPLIES = {
    Act.GREET: "Hello! What can I do for you?",
    Act.THANK: "You're welcome.",
    Act.IDENTITY: "I am Jackfield's agent on this machine. I choose tools for what you ask; "
    "I am not a language model.",
    Act.AGREE: "There is nothing to decide at the moment. What can I do for you?",
    Act.DISAGREE: _STOPPED,
}


@dataclass(frozen=True)
class _Question:
    """A value that the user was asked for, or whether a tool is meant at all."""

    tool: Tool
    args: Mapping[str, Any]
    parameter: Parameter | None
    text: str
    said: str
    """All that the user said for this call so far, the last words first."""
    attempts: int = 1
    options: tuple[Tool, ...] = ()
    """The tools among which the user is asked to choose,"""
    passed: tuple[Tool, ...] = ()
    """and those that were not meant."""


@dataclass(frozen=True)
class Setting:
    """What the conversations of a registry share."""

    tools: tuple[Tool, ...]
    router: Router
    model: ModelDecider | None
    manner: Manner
    clock: Callable[[], datetime]
    zone: str = ""


class AgentDialogue:
    """Decides with the model as soon as it is ready, and with the router until then."""

    def __init__(self, opening: Opening, setting: Setting) -> None:
        self._setting = setting
        self._forms = opening.forms and not setting.manner.spoken
        self._memory = Memory()
        self._question: _Question | None = None
        self._said = ""
        self._form: Tool | None = None
        self._learned = ""
        self._explained = False
        for each in opening.history:
            if each.speaker == "assistant":
                self._memory.recall(each.text)

    async def answer(self, text: str) -> AsyncIterator[Thought]:
        """The user said this."""
        text = text.strip()
        if not text:
            return
        self._said = text
        question, self._question = self._question, None
        if question is not None and _is_left(question, text):
            question = None
        # Sentence embeddings take a while; the event loop must not wait for them.
        if thoughts := await asyncio.to_thread(self._at_once, question, text):
            for thought in thoughts:
                yield thought
            return
        if (remark := self._getting_ready()) is not None:
            yield remark
        for thought in await self._decided(text, question):
            yield thought

    async def go_on(self, results: Sequence[ToolResult]) -> AsyncIterator[Thought]:
        """The calls of the last message are answered."""
        for thought in await asyncio.to_thread(self._results, results):
            yield thought

    async def submit(self, tool_id: str, values: Mapping[str, Any]) -> AsyncIterator[Thought]:
        """The user completed the form of a tool."""
        self._question = None
        tool = next((each for each in self._setting.tools if each.id == tool_id), None)
        if tool is None:
            yield Words(_NO_TOOL)
            return
        args = flat(values)
        self._memory.note(tool.purpose, written_call(tool.id, args))
        yield self._call(tool, args)

    def learn(self, text: str) -> None:
        """Context that the user did not say."""
        self._learned = text
        self._memory.recall(text)

    async def respond(self) -> AsyncIterator[Thought]:
        """Speak of what was last learned."""
        learned, self._learned = self._learned, ""
        if (outcome := outcome_in(learned)) is not None:
            yield Words(await asyncio.to_thread(self._tell, *outcome))
        elif is_declined(learned):
            yield Words(_STOPPED)
        elif learned:
            yield Words(learned)

    def interrupted(self, heard: str) -> None:
        """The last answer was cut short; a question that nobody heard does not wait for an answer."""
        if not heard.strip():
            self._question = None

    async def _decided(self, text: str, question: _Question | None) -> list[Thought]:
        """What follows from the model's decision, or from the router's where no model can make one."""
        model = self._setting.model
        if model is not None and model.ready:
            try:
                decision = await model.decide(self._memory.turns, self._context(question), text)
            except TransportError as error:
                _log.warning("the router decides, as the model could not: %s", error)
            else:
                return await asyncio.to_thread(self._carry_out, decision, text, question)
        return await asyncio.to_thread(self._route, text, question)

    def _getting_ready(self) -> Words | None:
        """Says once that the model is being prepared; not aloud."""
        model = self._setting.model
        if model is None or model.ready or self._explained or self._setting.manner.spoken:
            return None
        self._explained = True
        return Words(
            f"(The language model is getting ready: {model.progress:.0%}. "
            "Until then I choose tools without it.)\n\n"
        )

    # Whoever decides.

    def _at_once(self, question: _Question | None, text: str) -> list[Thought]:
        """What needs no decision: a word to stop, the reply to a question, what only text can do."""
        act = self._setting.router.act(text)
        if question is not None and question.options and (chosen := _chosen(question.options, text)):
            self._said = question.said
            return self._propose(chosen, question.said, None)
        if act is Act.DISAGREE and (question is not None or self._form is not None):
            passed = (*question.passed, *(question.options or (question.tool,))) if question else ()
            passed, self._form = (*passed, *filter(None, [self._form])), None
            return [self._offer(question.said if question else self._memory.asked, passed)]
        if act is Act.STOP:
            return [Words("" if self._setting.manner.spoken else _STOPPED)]
        self._form = None
        if question is not None and (thought := self._reply(question, text, act)) is not None:
            return [thought]
        if self._setting.router.is_text_only(self._speech(text)):
            self._memory.note(text, written_words(_TEXT_ONLY))
            return [Words(_TEXT_ONLY)]
        return []

    def _reply(self, question: _Question, text: str, act: Act | None) -> Thought | None:
        """What follows from the reply to a question; nothing where the words are a new request."""
        if question.parameter is None:
            agrees = act is Act.AGREE and not question.options
            return self._call(question.tool, question.args) if agrees else None
        found = self._filled(question, question.parameter, text)
        if found is None:
            return None
        tool = question.tool
        self._memory.note(text, written_call(tool.id, found.args))
        if found.missing is None and tool.writes and not (tool.confirmed or self._model_decides):
            return self._confirm(tool, found.args)
        return self._act(tool, found, question)

    def _filled(self, question: _Question, parameter: Parameter, text: str) -> Grounded | None:
        """The arguments with the reply, where the types tell that it is one."""
        if (parameter.kind is Kind.TEXT and self._model_decides) or is_question(text):
            return None
        tool, speech = question.tool, replace(self._speech(text), earlier=(), before=question.said)
        value: Any = None
        if parameter.kind is Kind.TEXT:
            value = reply(tool, parameter, speech)
        elif parameter.kind is Kind.NUMBER and len(said := amounts(text)) == 1:
            value = said[0].value
        hints = {parameter.name: [value] if parameter.many and value else value}
        found = ground(tool, hints, speech, question.args)
        return found if dict(found.args) != dict(question.args) else None

    @property
    def _model_decides(self) -> bool:
        return self._setting.model is not None and self._setting.model.ready

    # Without the model.

    def _route(self, text: str, question: _Question | None) -> list[Thought]:
        route = self._setting.router.route(self._speech(text))
        last, tool = self._memory.last, route.tool or self._identified(text)
        if last is not None and (shift(text) is not None or self._goes_on(last, tool, text)):
            tool = last.tool
        elif question is not None and tool is None and not question.options:
            # Words that are no reply and no request of their own: ask once more.
            tool = question.tool
        if tool is not None:
            return self._propose(tool, text, question)
        self._memory.note(text, written_words(""))
        self._memory.leave()
        if route.act is None:
            return [self._offer(text)]
        return [Words(self._help() if route.act is Act.HELP else _REPLIES[route.act])]

    def _offer(self, text: str, passed: tuple[Tool, ...] = ()) -> Words:
        """Nothing is close enough: the user may choose one of the closest tools that were not passed over."""
        closest = [each for each in self._setting.router.closest(self._speech(text)) if each not in passed]
        options = tuple(closest[:_OPTIONS])
        if not options:
            return Words(_NO_TOOL)
        listed = " ".join(f"{place}. {each.purpose}." for place, each in enumerate(options, 1))
        told = f"{_NO_TOOL} The closest I have: {listed} Say a number if you mean one of these."
        self._question = _Question(options[0], {}, None, told, text, options=options, passed=passed)
        return Words(told)

    def _goes_on(self, last: Proposal, tool: Tool | None, text: str) -> bool:
        """Whether a few words only change values of the last call, as in "and on Friday?"."""
        few = last.recent and len(text.split()) <= _CHANGE
        if not few or is_search(last.tool) or (tool is not None and not is_search(tool)):
            return False
        speech = replace(self._speech(text), earlier=())
        found = find(last.tool, speech, last.args)
        changed = dict(found.args) != dict(last.args)
        return changed and not unexplained(last.tool, speech, found.args.values())

    def _propose(self, tool: Tool, text: str, question: _Question | None) -> list[Thought]:
        """A call of a tool with the values in the words; a form or a question where that is not certain."""
        found = self._grounded(tool, None, text, question)
        self._memory.note(text, written_call(tool.id, found.args))
        self._memory.asked = text
        strange = unexplained(tool, self._speech(text), found.args.values())
        doubtful = found.guessed if tool.writes else frozenset()
        args = {name: value for name, value in found.args.items() if name not in doubtful}
        missing = next((each for each in tool.required if each.name not in args), None)
        if missing is None and (zone := _unknown_place(tool, strange, text)) is not None:
            # The time of a place that is not known must not be told as the user's own.
            missing = zone
            args = {name: value for name, value in args.items() if name != zone.name}
            found = replace(found, args=args, missing=zone)
        # A tool that nothing was said for but its name has to be named without more.
        own = self._setting.zone
        said = any(
            not _is_own_zone(tool, *each, own) for each in args.items() if each[0] not in found.guessed
        )
        unsure = strange and (tool.writes or not (said or asks_for_facts(text)))
        if missing is None and not (unsure or doubtful) and (tool.confirmed or not tool.writes):
            return [self._act(tool, replace(found, args=args, missing=None), question)]
        if self._forms:
            # What is written without a card is shown first, and so is every value that is only likely.
            self._form = tool
            intro = Words(f"{tool.purpose}: please check and complete this.")
            return [intro, FormRequest(f"form-{secrets.token_hex(8)}", tool.id, nested(found.args))]
        if found.missing is not None:
            return [self._ask(tool, Grounded(args, missing), question)]
        return [self._confirm(tool, found.args)]

    def _confirm(self, tool: Tool, args: Mapping[str, Any]) -> Words:
        """What is to be called, for the user to say yes or no."""
        values = describe_values(args, self._setting.manner)
        text = f"Do you mean this: {tool.purpose}{f' ({values})' if values else ''}? Please say yes or no."
        self._question = _Question(tool, args, None, text, self._said)
        return Words(text)

    # With the model.

    def _carry_out(self, decision: Decision | None, text: str, question: _Question | None) -> list[Thought]:
        last = self._memory.last
        if last is not None and shift(text) is not None and len(text.split()) <= _CHANGE:
            decision = Decision(last.tool, {})
        if decision is not None and decision.refused and (tool := self._identified(text)) is not None:
            decision = Decision(tool, {})
        if (
            (decision is None or decision.refused)
            and asks_for_facts(text)
            and (search := first_search(self._setting.tools))
        ):
            decision = Decision(search, {})
        if decision is None:
            return [Words(_NO_TOOL)]
        if decision.tool is None:
            self._memory.leave()
            self._memory.note(text, written_words(decision.text))
            return [Words(self._words(decision, text))]
        tool, raw = decision.tool, decision.args or {}
        if (
            tool.writes
            and question is None
            and (better := self._setting.router.better(tool, self._speech(text)))
        ):
            # Where the two disagree about something that cannot be undone, the user is asked.
            return self._propose(better, text, None)
        found = self._grounded(tool, raw, text, question)
        self._memory.note(text, written_call(tool.id, raw))
        self._memory.asked = text
        if is_search(tool) and asks_for_facts(text):
            # Every filter can hide the answer; `searches` narrows to what the question names.
            found = replace(found, args={each.name: found.args[each.name] for each in tool.required})
        if question is None and not self._is_meant(tool, found, text):
            search = first_search(self._setting.tools) if asks_for_facts(text) else None
            if search is None:
                return [Words(_NO_TOOL)]
            tool, found = search, ground(search, {}, self._speech(text))
        return [self._act(tool, found, question)]

    def _is_meant(self, tool: Tool, found: Grounded, text: str) -> bool:
        """Whether a tool can be what the user means: its values were said, or the words are about it."""
        if found.missing is not None and found.missing.kind is Kind.RECORDS:
            return False  # Nobody can be asked for these.
        asked = asks_for_facts(text)
        if asked and any(
            is_handed_over(tool, each) and each.name not in found.args for each in tool.required
        ):
            return False
        own = self._setting.zone
        if not all(_is_own_zone(tool, name, value, own) for name, value in found.args.items()):
            return True
        texts = [tool.description, *(each.says for each in tool.guide.examples)]
        embed = self._setting.manner.embed
        near = float((embed(texts) @ embed([text])[0]).max())
        return near >= (_ABOUT if tool.required and not asked else _CLEARLY_ABOUT)

    def _context(self, question: _Question | None) -> str:
        """What the model has to know besides the words: an open question, an open card, the last results."""
        card = self._memory.last if self._memory.last is not None and self._memory.last.waiting else None
        return context_lines(
            question.text if question is not None else "",
            (card.tool.id, card.args) if card is not None else None,
            self._memory.records,
        )

    def _words(self, decision: Decision, text: str) -> str:
        if decision.helps:
            return self._help()
        if decision.refused:
            return f"I cannot {decision.text.rstrip('.')}: no tool here does that."
        numbers = set(re.findall(r"\d+", decision.text)) - set(re.findall(r"\d+", text))
        # A fact or a deed that the model made up is worse than no answer.
        return _NO_TOOL if numbers or _CLAIM.search(decision.text) else decision.text

    # Both.

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
        self, tool: Tool, hints: Mapping[str, Any] | None, text: str, question: _Question | None
    ) -> Grounded:
        """The arguments; those of an open question or of the last call complete what the words change.

        `hints` are what the model wrote; nothing where the router decided.
        """
        speech = self._speech(text)

        def arguments(speech: Speech, base: Mapping[str, Any] | None = None) -> Grounded:
            return find(tool, speech, base) if hints is None else ground(tool, hints, speech, base)

        if question is not None and question.tool is tool:
            asked = question.parameter
            if hints == {} and asked is not None and asked.kind is Kind.TEXT and not is_question(text):
                hints = {asked.name: text}
            return arguments(replace(speech, before=question.said), question.args)
        found = arguments(speech)
        last = self._memory.last
        if last is None or last.tool is not tool:
            return found
        complete = found.missing is None and not found.unusable and shift(text) is None
        only_values = not untyped(tool, speech) - stems(" ".join(map(str, found.args.values())))
        if (complete and not found.guessed and not only_values) or not _is_change(last, found, text):
            return found
        return arguments(replace(speech, earlier=()), last.args)

    def _act(self, tool: Tool, found: Grounded, question: _Question | None) -> Thought:
        if found.missing is not None and question is None and (search := self._search_for(found.missing)):
            parameter = search.required[0]
            found, tool = Grounded({parameter.name: self._memory.asked}), search
        if found.missing is not None:
            return self._ask(tool, found, question)
        last = self._memory.last
        if last is not None and last.waiting and last.tool is tool and dict(last.args) == dict(found.args):
            names = ", ".join(each.spoken for each in tool.parameters if each.required)
            return Words(
                f"Nothing has changed: the card still waits for your approval. What should change ({names})?"
            )
        if last is not None and tool.writes and last.tool is tool and dict(last.args) == dict(found.args):
            return Words("That is what was done last; nothing was done again.")
        return self._call(tool, found.args)

    def _call(self, tool: Tool, args: Mapping[str, Any]) -> ToolCalls:
        last = self._memory.last
        replaces = last is not None and last.waiting and last.tool is tool
        self._memory.last = Proposal(tool, args, replaces=replaces)
        every: Sequence[Mapping[str, Any]] = [args]
        if is_search(tool):
            most = MOST_SPOKEN if self._setting.manner.spoken else MOST
            every = self._memory.searched = searches(tool, args, self._memory.asked, most)
        return ToolCalls(tuple(_tool_call(tool, each) for each in every))

    def _results(self, results: Sequence[ToolResult]) -> list[Thought]:
        """What follows from the answers to the calls of one message."""
        envelopes = [(each.tool_id, read_envelope(each.envelope)) for each in results]
        if len(envelopes) > 1 and not all(envelope.get("error") for _, envelope in envelopes):
            found = [envelope.get("data") for _, envelope in envelopes]
            envelopes = [
                (envelopes[0][0], {"data": merged(self._memory.searched, found, self._memory.asked)})
            ]
        told = self._tell(*envelopes[0])
        return [self._whole_record(envelopes[0][0]) or Words(told)]

    def _whole_record(self, tool_id: str) -> ToolCalls | None:
        """The call that fetches the text of the best result, where the search gave only a part of it."""
        setting, last = self._setting, self._memory.last
        if setting.manner.spoken or last is None or not is_search(last.tool) or last.tool.id != tool_id:
            return None
        best = best_record(self._memory.asked, self._memory.records, setting.manner)
        if best is None or not is_cut_off(best):
            return None
        fetch = reading(setting.tools, last.tool, best)
        return None if fetch is None else ToolCalls((_tool_call(*fetch),))

    def _search_for(self, missing: Parameter) -> Tool | None:
        """The search that finds an identifier which the user cannot know: its description names it."""
        if missing.kind is not Kind.IDENTIFIER:
            return None
        tools = self._setting.tools
        return first_search(each for each in tools if each.id in missing.description)

    def _ask(self, tool: Tool, found: Grounded, question: _Question | None) -> Words:
        parameter = found.missing
        assert parameter is not None  # noqa: S101 - asked only where something is missing
        # Who answers something else about the call has brought it further, and may be asked again.
        stuck = question is not None and question.tool is tool and dict(question.args) == dict(found.args)
        attempts = question.attempts + 1 if question is not None and stuck else 1
        if attempts > _ATTEMPTS:
            return Words(f"I cannot go on without the {parameter.spoken}. Ask again when you have it.")
        if parameter.kind is Kind.RECORDS:
            return Words(f"I cannot fill in the {parameter.spoken} here, which this needs: {tool.purpose}.")
        text = ask_for(parameter, found.unusable)
        same = question is not None and question.tool is tool
        said = f"{self._said}\n{question.said}" if question is not None and same else self._said
        self._question = _Question(tool, found.args, parameter, text, said, attempts)
        return Words(text)

    def _speech(self, text: str) -> Speech:
        setting, last = self._setting, self._memory.last
        return Speech(
            text,
            setting.clock(),
            setting.manner.embed,
            tuple(turn.said for turn in self._memory.turns),
            setting.zone,
            self._memory.records,
            day=day_of(self._memory.last.args)
            if self._memory.last is not None and self._memory.last.recent
            else None,
            seen=self._memory.seen,
        )

    def _help(self) -> str:
        purposes = [each.purpose for each in self._setting.tools]
        if self._setting.manner.spoken:
            return f"I have {len(purposes)} tools. For example: {'; '.join(purposes[:3])}."
        return "This is what I can do:\n" + "\n".join(f"- {each}." for each in purposes)

    def _tell(self, tool_id: str, envelope: Mapping[str, Any]) -> str:
        self._memory.take(tool_id, envelope)
        error = envelope.get("error")
        if isinstance(error, Mapping):
            if error.get("type") == "CONFIRMATION_REQUIRED":
                replaces = self._memory.last is not None and self._memory.last.replaces
                before = " The card before it waits as well: decline that one." if replaces else ""
                return f"This waits for your approval; nothing has been done yet.{before}"
            return tell_failure(error)
        return tell_result(envelope.get("data"), self._memory.asked, self._setting.manner)


def _tool_call(tool: Tool, args: Mapping[str, Any]) -> ToolCall:
    return ToolCall(tool.id, orjson.dumps(nested(args)).decode(), f"local-{secrets.token_hex(8)}")


def _is_own_zone(tool: Tool, name: str, value: Any, own: str) -> bool:
    """Whether a value is the user's own time zone, which was not said."""
    parameter = tool.parameter(name)
    return parameter is not None and parameter.kind is Kind.ZONE and value == own


def _chosen(options: Sequence[Tool], text: str) -> Tool | None:
    """The option that a few words count out."""
    heard = words(text)
    counted = [
        ORDINALS.get(each) or WORDS.get(each) or (int(each) if each.isdecimal() else 0) for each in heard
    ]
    place = next((each for each in counted if each), 0)
    return options[place - 1] if 0 < place <= len(options) and len(heard) <= _FOLLOW_UP else None


def _is_left(question: _Question, text: str) -> bool:
    """Whether a question for a text to hand over is left open: a few words are another request."""
    asked = question.parameter
    return asked is not None and is_handed_over(question.tool, asked) and len(text.split()) <= _CHANGE


def _unknown_place(tool: Tool, strange: set[str], text: str) -> Parameter | None:
    """The time zone of a tool where the words name a place of which none is known."""
    zones = [each for each in tool.parameters if each.kind is Kind.ZONE and not each.many]
    placed = {stem(each) for each in re.findall(r"\bin (?:the )?(\w+)", text.lower())}
    return zones[0] if zones and placed & strange else None


def _is_change(last: Proposal, found: Grounded, text: str) -> bool:
    """Whether words change the last call, rather than begin another one of which something is missing."""
    given = sum(each.name in found.args for each in last.tool.required)
    few = len(text.split()) <= (_CHANGE if last.waiting else _FOLLOW_UP)
    return few or shift(text) is not None or (last.waiting and given * 2 <= len(last.tool.required))
