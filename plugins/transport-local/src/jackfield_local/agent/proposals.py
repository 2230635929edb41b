"""From a tool to its call and back: arguments, questions, forms, confirmation, results in words."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson
from jackfield.contract.call import ToolCall
from jackfield.transport.events import FormRequest, ToolCalls
from jackfield.transport.protocol import Opening, ToolResult

from jackfield_local.agent.answers import (
    Manner,
    ask_for,
    best_record,
    describe_values,
    is_cut_off,
    tell_failure,
    tell_result,
)
from jackfield_local.agent.decider import ModelDecider
from jackfield_local.agent.decision import written_call
from jackfield_local.agent.grounding import Grounded, find, ground
from jackfield_local.agent.memory import Memory, Proposal, read_envelope
from jackfield_local.agent.parameters import Kind, Parameter, Tool, nested
from jackfield_local.agent.router import Router
from jackfield_local.agent.searches import MOST, MOST_SPOKEN, first_search, merged, reading, searches
from jackfield_local.agent.speech import Speech
from jackfield_local.agent.texts import is_search, unexplained, untyped
from jackfield_local.agent.times import day_of
from jackfield_local.agent.values import patterned
from jackfield_local.language.durations import shift
from jackfield_local.language.questions import asks_for_facts, is_question
from jackfield_local.language.words import stem, stems
from jackfield_local.mind import Thought, Words

_READ = 1_000
"""Characters of a message in which values are looked for; what is longer holds a text to pass on."""

_ATTEMPTS = 2
_OPTIONS = 3
"""Tools among which the user may choose where none is close enough."""

CHANGE = 10
"""Words of a message that changes an open card, at most."""

FOLLOW_UP = 6
"""Words of a message that goes on with a call that was made, such as "and tomorrow?", at most."""

NO_TOOL = "I have no tool for that."
STOPPED = "All right, nothing was done."


@dataclass(frozen=True)
class Question:
    """A value that the user was asked for, or whether a tool is meant at all."""

    tool: Tool
    args: Mapping[str, Any]
    parameter: Parameter | None
    text: str
    said: str
    """All that the user said for this call so far, the last words first."""
    attempts: int = 1
    options: tuple[Tool, ...] = ()
    """The tools among which the user is asked to choose."""
    passed: tuple[Tool, ...] = ()
    """The tools that were offered before and not chosen."""


@dataclass(frozen=True)
class Setting:
    """What the conversations of a registry share."""

    tools: tuple[Tool, ...]
    router: Router
    model: ModelDecider | None
    manner: Manner
    clock: Callable[[], datetime]
    zone: str = ""


class Proposals:
    """The part of a dialogue that is the same for whatever chose the tool."""

    def __init__(self, opening: Opening, setting: Setting) -> None:
        self._setting = setting
        self._forms = opening.forms and not setting.manner.spoken
        self._memory = Memory()
        self._question: Question | None = None
        self._form: Tool | None = None
        self._said = ""
        self._fetching = ""
        """What is told if the whole text of a result cannot be fetched."""

    def _propose(self, tool: Tool, text: str, question: Question | None) -> list[Thought]:
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
        said = any(not is_own_zone(tool, *each, own) for each in args.items() if each[0] not in found.guessed)
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

    def _grounded(
        self, tool: Tool, hints: Mapping[str, Any] | None, text: str, question: Question | None
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
        goes_on = last.waiting or only_values or shift(text) is not None
        if (complete and not found.guessed and not only_values) or not (
            goes_on and _is_change(last, found, text)
        ):
            return found
        return arguments(replace(speech, earlier=()), last.args)

    def _act(self, tool: Tool, found: Grounded, question: Question | None) -> Thought:
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
        repeated = last is not None and last.tool is tool and dict(last.args) == dict(found.args)
        if repeated and last is not None and tool.writes and last.done and last.recent:
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

    def _ask(self, tool: Tool, found: Grounded, question: Question | None) -> Words:
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
        self._question = Question(tool, found.args, parameter, text, said, attempts)
        return Words(text)

    def _confirm(self, tool: Tool, args: Mapping[str, Any]) -> Words:
        """What is to be called, for the user to say yes or no."""
        values = describe_values(args, self._setting.manner)
        text = f"Do you mean this: {tool.purpose}{f' ({values})' if values else ''}? Please say yes or no."
        self._question = Question(tool, args, None, text, self._said)
        return Words(text)

    def _offer(self, text: str, passed: tuple[Tool, ...] = ()) -> Words:
        """The user may choose one of the closest tools: nothing is close enough, or it was not meant."""
        closest = [each for each in self._setting.router.closest(self._speech(text)) if each not in passed]
        options = tuple(closest[:_OPTIONS])
        if not options:
            return Words(NO_TOOL)
        listed = " ".join(f"{place}. {each.purpose}." for place, each in enumerate(options, 1))
        begun = f"{STOPPED} Did you mean one of these?" if passed else f"{NO_TOOL} The closest I have:"
        told = f"{begun} {listed} Say a number if you mean one."
        self._question = Question(options[0], {}, None, told, text, options=options, passed=passed)
        return Words(told)

    def _search_for(self, missing: Parameter) -> Tool | None:
        """The search that finds an identifier which the user cannot know: its description names it."""
        if missing.kind is not Kind.IDENTIFIER:
            return None
        tools = self._setting.tools
        return first_search(each for each in tools if each.id in missing.description)

    def _identified(self, text: str) -> Tool | None:
        """The only tool that takes an identifier of the form that stands in a text."""
        fits = [
            tool
            for tool in self._setting.tools
            if tool.required
            and all(each.kind is Kind.IDENTIFIER and patterned(each, text) for each in tool.required)
        ]
        return fits[0] if len(fits) == 1 else None

    def _results(self, results: Sequence[ToolResult]) -> list[Thought]:
        """What follows from the answers to the calls of one message."""
        envelopes = [(each.tool_id, read_envelope(each.envelope)) for each in results]
        if len(envelopes) > 1 and not all(envelope.get("error") for _, envelope in envelopes):
            found = [envelope.get("data") for _, envelope in envelopes]
            envelopes = [
                (envelopes[0][0], {"data": merged(self._memory.searched, found, self._memory.asked)})
            ]
        if envelopes[0][1].get("error") and self._fetching:
            # The whole text could not be had; what the search gave answers as well.
            told, self._fetching = self._fetching, ""
            return [Words(told)]
        told = self._tell(*envelopes[0])
        fetch = self._whole_record(envelopes[0][0])
        self._fetching = told if fetch is not None else ""
        return [fetch or Words(told)]

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

    def _tell(self, tool_id: str, envelope: Mapping[str, Any]) -> str:
        self._memory.take(tool_id, envelope)
        error = envelope.get("error")
        if isinstance(error, Mapping):
            if error.get("type") == "CONFIRMATION_REQUIRED":
                replaces = self._memory.last is not None and self._memory.last.replaces
                before = (
                    " The card before it still waits: decline it if this one replaces it." if replaces else ""
                )
                return f"This waits for your approval; nothing has been done yet.{before}"
            return tell_failure(error)
        return tell_result(envelope.get("data"), self._memory.asked, self._setting.manner)

    def _speech(self, text: str) -> Speech:
        setting, last = self._setting, self._memory.last
        return Speech(
            text[:_READ],
            setting.clock(),
            setting.manner.embed,
            tuple(turn.said[:_READ] for turn in self._memory.turns),
            setting.zone,
            self._memory.records,
            day=day_of(last.args) if last is not None and last.recent else None,
            seen=self._memory.seen,
            handed=text,
        )


def _tool_call(tool: Tool, args: Mapping[str, Any]) -> ToolCall:
    return ToolCall(tool.id, orjson.dumps(nested(args)).decode(), f"local-{secrets.token_hex(8)}")


def is_own_zone(tool: Tool, name: str, value: Any, own: str) -> bool:
    """Whether a value is the user's own time zone, which was not said."""
    parameter = tool.parameter(name)
    return parameter is not None and parameter.kind is Kind.ZONE and value == own


def _is_change(last: Proposal, found: Grounded, text: str) -> bool:
    """Whether words change the last call, rather than begin another one of which something is missing."""
    given = sum(each.name in found.args for each in last.tool.required)
    few = len(text.split()) <= (CHANGE if last.waiting else FOLLOW_UP)
    return few or shift(text) is not None or (last.waiting and given * 2 <= len(last.tool.required))


def _unknown_place(tool: Tool, strange: set[str], text: str) -> Parameter | None:
    """The time zone of a tool where the words name a place of which none is known."""
    zones = [each for each in tool.parameters if each.kind is Kind.ZONE and not each.many]
    placed = {stem(each) for each in re.findall(r"\bin (?:the )?(\w+)", text.lower())}
    return zones[0] if zones and placed & strange else None
