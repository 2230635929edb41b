"""From a tool to its call and back: arguments, questions, forms, confirmation, results in words."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import FormRequest, ToolCalls
from jackfield.transport.protocol import ToolResult

from jackfield_local.agent.answers import (
    ResponseStyle,
    ask_for,
    best_record,
    describe_values,
    is_cut_off,
    tell_failure,
    tell_result,
    title_of,
)
from jackfield_local.agent.decision import ModelDecider, written_call
from jackfield_local.agent.grounding import Grounded, ground
from jackfield_local.agent.parameters import Kind, Parameter, Tool, nested
from jackfield_local.agent.router import Router
from jackfield_local.agent.searches import MOST, MOST_SPOKEN, merged, reading, searches
from jackfield_local.agent.speech import Speech
from jackfield_local.agent.state import (
    Call,
    DialogueState,
    Envelope,
    Expects,
    Question,
    is_waiting,
    read_envelope,
)
from jackfield_local.agent.texts import is_search, unexplained, untyped
from jackfield_local.agent.times import day_of
from jackfield_local.language.durations import shift
from jackfield_local.language.questions import asks_for_facts, is_question
from jackfield_local.language.words import stems
from jackfield_local.mind import Thought, Words

_READ = 1_000
"""Characters of a message in which values are looked for; what is longer holds a text to pass on."""

_ATTEMPTS = 2
_OPTIONS = 3
"""Tools among which the user may choose where none is close enough."""

CHANGE = 10
"""Words of a message that changes the last call, such as "and tomorrow?", at most."""

NO_TOOL = "I have no tool for that."
STOPPED = "All right, nothing was done."


@dataclass(frozen=True)
class Setting:
    """What the conversations of a registry share."""

    tools: tuple[Tool, ...]
    router: Router
    model: ModelDecider | None
    style: ResponseStyle
    clock: Callable[[], datetime]
    zone: str = ""


class CallPlanner:
    """Makes a call, a form or a question of a tool and the user's words, whatever chose the tool."""

    def __init__(self, setting: Setting, state: DialogueState, *, forms: bool) -> None:
        self._setting = setting
        self._state = state
        self._forms = forms
        self._fallback = ""
        """What is told if the whole text of a result cannot be fetched."""

    def speech(self, text: str) -> Speech:
        """The user's words with what they can refer to."""
        setting, state = self._setting, self._state
        return Speech(
            text[:_READ],
            setting.clock(),
            setting.style.embed,
            tuple(turn.user_text[:_READ] for turn in state.turns),
            setting.zone,
            state.records,
            state.topic,
            day=day_of(state.last.args) if state.last is not None and state.last.recent else None,
            seen=state.seen,
            handed=text,
        )

    def propose(self, tool: Tool, text: str, question: Question | None) -> list[Thought]:
        """A call of a tool that no model chose; a form or a question where that is not certain."""
        found = self.grounded(tool, None, text, question)
        self._state.note(text, written_call(tool.id, found.args))
        self._state.request = text
        strange = unexplained(tool, self.speech(text), found.args.values())
        doubtful = found.guessed if tool.writes else frozenset()
        # A tool that nothing was said for but its name has to be named without more.
        said = found.has_values(self._setting.zone) or asks_for_facts(text)
        unsure = doubtful or (strange and (tool.writes or not said))
        if found.missing is None and not unsure and (tool.confirmed or not tool.writes):
            return [self.act(tool, found, question)]
        if self._forms:
            # What is written without a card is shown first, and so is every value that is only likely.
            intro = f"{tool.purpose}: please check and complete this."
            self._state.question = Question(Expects.FORM, (tool,), intro, text)
            return [Words(intro), FormRequest(f"form-{secrets.token_hex(8)}", tool.id, nested(found.args))]
        if found.missing is not None:
            return [self._ask(tool, found, question)]
        return [self._confirm(tool, found.args)]

    def grounded(
        self, tool: Tool, hints: Mapping[str, Any] | None, text: str, question: Question | None
    ) -> Grounded:
        """The arguments; those of an open question or of the last call complete what the words change."""
        speech, last = self.speech(text), self._state.last
        if question is not None and question.tool is tool:
            asked = question.parameter
            if hints == {} and asked is not None and asked.kind is Kind.TEXT and not is_question(text):
                hints = {asked.name: text}
            return ground(tool, hints, replace(speech, before=question.said), question.args)
        found = ground(tool, hints, speech)
        if last is None or last.tool is not tool or not _is_change(last, found, speech):
            return found
        return ground(tool, hints, replace(speech, earlier=()), last.args)

    def act(self, tool: Tool, found: Grounded, question: Question | None, *, is_sure: bool = True) -> Thought:
        """The call with the arguments that were found, or a question: for what is missing, or for consent.

        A value that is only likely never reaches a tool that writes without the user's consent.
        """
        last = self._state.last
        if found.missing is not None and question is None and (search := self._search_for(found.missing)):
            tool, found = search, Grounded({search.required[0].name: self._state.request})
        if found.missing is not None:
            return self._ask(tool, found, question)
        if tool.writes and not tool.confirmed and (found.guessed or not is_sure):
            return self._confirm(tool, found.args)
        if last is not None and last.repeats(tool, found.args):
            if last.waiting:
                names = ", ".join(each.spoken for each in tool.parameters if each.required)
                return Words(
                    "Nothing has changed: the card still waits for your approval. "
                    f"What should change ({names})?"
                )
            if tool.writes and last.done and last.recent:
                return Words("That is what was done last; nothing was done again.")
        return self.call(tool, found.args)

    def call(self, tool: Tool, args: Mapping[str, Any]) -> ToolCalls:
        """The call; a question is searched for in every place that the search knows."""
        last = self._state.last
        replaces = last is not None and last.waiting and last.tool is tool
        self._state.last = Call(tool, args, replaces=replaces)
        every: Sequence[Mapping[str, Any]] = [args]
        if is_search(tool):
            most = MOST_SPOKEN if self._setting.style.spoken else MOST
            self._state.request = str(args[tool.required[0].name])
            every = self._state.searched = searches(tool, args, self._state.request, most)
        return ToolCalls(tuple(_tool_call(tool, each) for each in every))

    def _ask(self, tool: Tool, found: Grounded, question: Question | None) -> Words:
        state = self._state
        # What is kept while the user is asked must not be a guess once all is there.
        args = found.certain if tool.writes else found.args
        parameter = next((each for each in tool.required if each.name not in args), found.missing)
        assert parameter is not None  # noqa: S101 - asked only where something is missing
        if parameter.kind is Kind.RECORDS:
            return Words(f"I cannot fill in the {parameter.spoken} here, which this needs: {tool.purpose}.")
        text, said, attempts = ask_for(parameter, found.unusable), state.said, 1
        if question is not None and question.tool is tool:
            said = f"{said}\n{question.said}"
            # Who answers something else about the call has brought it further, and may be asked again.
            attempts += question.attempts if dict(question.args) == dict(args) else 0
        if attempts > _ATTEMPTS:
            return Words(f"I cannot go on without the {parameter.spoken}. Ask again when you have it.")
        state.question = Question(Expects.VALUE, (tool,), text, said, args, parameter, attempts)
        return Words(text)

    def _confirm(self, tool: Tool, args: Mapping[str, Any]) -> Words:
        """What is to be called, for the user to say yes or no."""
        values = describe_values(args, self._setting.style)
        text = f"Do you mean this: {tool.purpose}{f' ({values})' if values else ''}? Please say yes or no."
        self._state.question = Question(Expects.CONSENT, (tool,), text, self._state.said, args)
        return Words(text)

    def offer(self, text: str, passed: tuple[Tool, ...] = ()) -> Words:
        """The user may choose one of the closest tools: nothing is close enough, or it was not meant."""
        closest = [each for each in self._setting.router.closest(self.speech(text)) if each not in passed]
        options = tuple(closest[:_OPTIONS])
        if not options:
            return Words(NO_TOOL)
        listed = " ".join(f"{place}. {each.purpose}." for place, each in enumerate(options, 1))
        begun = f"{STOPPED} Did you mean one of these?" if passed else f"{NO_TOOL} The closest I have:"
        told = f"{begun} {listed} Say a number if you mean one."
        self._state.question = Question(Expects.CHOICE, options, told, text, passed=passed)
        return Words(told)

    def _search_for(self, missing: Parameter) -> Tool | None:
        """The search that finds an identifier which the user cannot know: its description names it."""
        search = self._setting.router.search
        is_found = missing.kind is Kind.IDENTIFIER and search is not None and search.id in missing.description
        return search if is_found else None

    def take_results(self, results: Sequence[ToolResult]) -> Thought:
        """What follows from the answers to the calls of one message."""
        tool_id, envelopes = results[0].tool_id, [read_envelope(each.envelope) for each in results]
        envelope = envelopes[0]
        if len(envelopes) > 1 and not all(each.get("error") for each in envelopes):
            found = [each.get("data") for each in envelopes]
            envelope = {"data": merged(self._state.searched, found, self._state.request)}
        told, self._fallback = self._fallback, ""
        if envelope.get("error") and told:
            # The whole text could not be had; what the search gave answers as well.
            return Words(told)
        told = self.tell(tool_id, envelope)
        fetch = self._whole_record(tool_id)
        self._fallback = told if fetch is not None else ""
        return fetch or Words(told)

    def _whole_record(self, tool_id: str) -> ToolCalls | None:
        """The call that fetches the text of the best result, where the search gave only a part of it."""
        setting, last = self._setting, self._state.last
        if last is None or not is_search(last.tool) or last.tool.id != tool_id:
            return None
        best = best_record(self._state.request, self._state.records, setting.style)
        if best is not None:
            self._state.topic = title_of(best)
        if best is None or setting.style.spoken or not is_cut_off(best):
            return None
        fetch = reading(setting.tools, last.tool, best)
        return None if fetch is None else ToolCalls((_tool_call(*fetch),))

    def tell(self, tool_id: str, envelope: Envelope) -> str:
        """The answer to a call in words."""
        self._state.take_result(tool_id, envelope)
        error = envelope.get("error")
        if is_waiting(envelope):
            replaces = self._state.last is not None and self._state.last.replaces
            before = " The card before it still waits: decline it if this one replaces it."
            return f"This waits for your approval; nothing has been done yet.{before if replaces else ''}"
        if isinstance(error, Mapping):
            return tell_failure(error)
        return tell_result(envelope.get("data"), self._state.request, self._setting.style)


def _tool_call(tool: Tool, args: Mapping[str, Any]) -> ToolCall:
    return ToolCall(tool.id, orjson.dumps(nested(args)).decode(), f"local-{secrets.token_hex(8)}")


def _is_change(last: Call, found: Grounded, speech: Speech) -> bool:
    """Whether words change the last call, rather than begin another one."""
    if shift(speech.said) is not None:
        return True
    only_values = not untyped(last.tool, speech) - stems(" ".join(map(str, found.args.values())))
    complete = found.missing is None and not found.unusable and not found.guessed
    if (complete and not only_values) or not (last.waiting or only_values):
        return False
    given = sum(each.name in found.args for each in last.tool.required)
    few = len(speech.said.split()) <= CHANGE
    return few or (last.waiting and given * 2 <= len(last.tool.required))
