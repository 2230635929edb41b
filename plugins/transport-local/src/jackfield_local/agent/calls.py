"""Plans a tool call and describes its result: arguments, questions, forms and confirmation."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import FormRequest, TextDelta, ToolCalls
from jackfield.transport.protocol import ToolResult
from jackfield_language.numbers import time_change
from jackfield_language.questions import asks_for_facts, is_continuation, is_question, refers_back
from jackfield_language.words import stems

from jackfield_local.agent import results
from jackfield_local.agent.grounding import GroundedArguments, ground
from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.prompt import ModelDecider, written_call
from jackfield_local.agent.router import Router
from jackfield_local.agent.state import (
    DialogueState,
    Envelope,
    ExpectedReply,
    LastCall,
    PendingQuestion,
    is_waiting,
    read_envelope,
)
from jackfield_local.agent.texts import is_brief, is_search, unexplained, untyped
from jackfield_local.agent.times import day_of
from jackfield_local.agent.tools import Tool, ValueType, nest
from jackfield_local.connection import AnswerPart

_ATTEMPTS = 2
_OPTIONS = 3  # The number of tools offered to the user if none is close enough.
_MOST_SEARCHES, _MOST_SPOKEN_SEARCHES = 4, 2
"""Maximum searches for one question, in text and in voice. The policies allow five and two by default."""

_READ, _SAME, _SAME_PRONOUN = 300, 0.3, 0.2
"""How many characters of an earlier answer are compared with a question, and the minimum similarity for
repeating the answer: to a question without a pronoun that refers back, and to a question with one."""

CHANGE = 10  # Maximum words in a message that changes the last call, such as "and tomorrow?".
NO_TOOL = "I have no tool for that."
STOPPED = "All right, nothing was done."

Clock = Callable[[], datetime]


@dataclass(frozen=True)
class AgentContext:
    """State that all conversations of a registry share."""

    tools: tuple[Tool, ...]
    router: Router
    model: ModelDecider | None
    style: results.ResponseStyle
    clock: Clock
    zone: str = ""


class CallPlanner:
    """Creates a call, a form or a question from a tool and the user's words, however the tool was chosen."""

    def __init__(self, context: AgentContext, state: DialogueState, *, forms: bool) -> None:
        self._context = context
        self._state = state
        self._forms = forms
        self._searched: Sequence[Mapping[str, Any]] = ()
        self._fallback = ""
        """The answer if the whole text of a result cannot be fetched."""

    def message(self, text: str) -> UserMessage:
        """Return the user's words with the context that they can refer to."""
        context, state = self._context, self._state
        return UserMessage(
            text,
            context.clock(),
            context.style.embed,
            tuple(each.said for each in state.exchanges),
            context.zone,
            state.records,
            state.topic,
            day=day_of(state.last.args) if state.last is not None and state.last.recent else None,
            seen=state.seen,
        )

    def propose(self, tool: Tool, text: str, question: PendingQuestion | None = None) -> list[AnswerPart]:
        """Call a tool without the model's hints; if the call is not certain, show a form or ask."""
        found = self.arguments(tool, None, text, question)
        self.note_request(text, written_call(tool.id, found.args))
        strange = unexplained(tool, self.message(text), found.args.values())
        # Without any value in the request, the request must consist of the tool's own words.
        said = found.has_values(self._context.zone) or asks_for_facts(text)
        doubtful = bool(strange) and not said
        if tool.writes:
            doubtful = not tool.confirmed or bool(found.guessed or strange)
        if self._forms and (found.missing is not None or doubtful):
            deed = re.split("[,;:]", tool.purpose)[0]
            intro = f"{deed}: please check and complete this."
            self._state.question = PendingQuestion(ExpectedReply.FORM, (tool,), intro, text, found.args)
            return [TextDelta(intro), FormRequest(f"form-{secrets.token_hex(8)}", tool.id, nest(found.args))]
        return [self.act(tool, found, question, doubtful=doubtful)]

    def note_request(self, text: str, written: str) -> None:
        """Remember a request and the call for it."""
        self._state.note(text, written)
        self._state.request = text

    def arguments(
        self, tool: Tool, hints: Mapping[str, Any] | None, text: str, question: PendingQuestion | None
    ) -> GroundedArguments:
        """Ground the arguments, and complete them with those of the open question or of the last call."""
        state, message = self._state, self.message(text)
        if question is not None and question.tool is tool:
            asked = question.parameter
            if hints == {} and asked is not None and asked.type is ValueType.TEXT and not is_question(text):
                hints = {asked.name: text}
            return ground(tool, hints, replace(message, before=question.said), question.args)
        found = ground(tool, hints, message)
        lacks, last = found.missing, state.previous(tool)
        if lacks is not None and state.topic and not tool.writes and is_brief(tool, lacks.name):
            # "LinkedIn too, please" after a question about a person.
            found = ground(tool, hints, message, {**found.args, lacks.name: state.topic})
        if last is None or not _is_change(last, found, message):
            return found
        return ground(tool, hints, replace(message, earlier=()), last.args)

    def act(
        self,
        tool: Tool,
        found: GroundedArguments,
        question: PendingQuestion | None,
        *,
        doubtful: bool = False,
    ) -> AnswerPart:
        """Call the tool with the arguments, or ask for what is missing or for consent.

        Without the user's consent, a guessed value is never passed to a tool that writes.
        """
        state, search = self._state, self._context.router.search
        if (missing := found.missing) is not None:
            # The user cannot know an identifier whose description names the search; the search can find it.
            is_found = missing.type is ValueType.IDENTIFIER and search and search.id in missing.description
            if search is None or question is not None or not is_found:
                return self._ask(tool, found, question)
            tool, found, doubtful = search, GroundedArguments({search.required[0].name: state.request}), False
        if doubtful or (tool.writes and not tool.confirmed and found.guessed):
            values = results.describe_values(found.args, self._context.style)
            shown = f"{tool.purpose} ({values})" if values else tool.purpose
            text = f"Do you mean this: {shown}? Please say yes or no."
            state.question = PendingQuestion(ExpectedReply.CONSENT, (tool,), text, state.said, found.args)
            return TextDelta(text)
        last = state.previous(tool)
        if last is not None and dict(last.args) == dict(found.args):
            if last.waiting:
                names = ", ".join(each.spoken for each in tool.required)
                return TextDelta(
                    "Nothing has changed: the card is still waiting for your approval. "
                    f"What should change ({names})?"
                )
            if tool.writes and last.done and last.recent:
                return TextDelta("I have just done that, so I did not do it again.")
        return self.call(tool, found.args)

    def call(self, tool: Tool, args: Mapping[str, Any]) -> ToolCalls:
        """Call a tool; if it is the search, search in every place that it knows, up to a maximum."""
        self._state.last = LastCall(tool, args)
        every: Sequence[Mapping[str, Any]] = [args]
        if is_search(tool):
            most = _MOST_SPOKEN_SEARCHES if self._context.style.spoken else _MOST_SEARCHES
            self._state.request = str(args[tool.required[0].name])
            every = self._searched = results.searches(tool, args, self._state.request, most)
        return ToolCalls(tuple(_tool_call(tool, each) for each in every))

    def _ask(self, tool: Tool, found: GroundedArguments, question: PendingQuestion | None) -> TextDelta:
        # Values that are kept while the user is asked must not be guesses: the reply may complete the call.
        args = found.certain if tool.writes else found.args
        parameter = next((each for each in tool.required if each.name not in args), found.missing)
        assert parameter is not None  # noqa: S101 - called only if something is missing
        if parameter.type is ValueType.RECORDS:
            return TextDelta(
                f"This request needs a tool that I cannot use here ({tool.purpose}), "
                f"because I cannot fill in the {parameter.spoken}."
            )
        said, attempts = self._state.said, 1
        if question is not None and question.tool is tool:
            said = f"{said}\n{question.said}"
            # A reply that gives another value makes progress, so the question may be repeated.
            attempts += question.attempts if dict(question.args) == dict(args) else 0
        if attempts > _ATTEMPTS:
            return TextDelta(f"I cannot continue without the {parameter.spoken}. Ask again when you have it.")
        text = results.ask_for(parameter, found.unusable)
        self._state.question = PendingQuestion(
            ExpectedReply.VALUE, (tool,), text, said, args, parameter, attempts
        )
        return TextDelta(text)

    def offer(self, text: str, passed: tuple[Tool, ...] = ()) -> TextDelta:
        """Offer the closest tools if none is close enough or the proposed one was not meant."""
        closest = self._context.router.closest(self.message(text), related=not passed)
        options = tuple([each for each in closest if each not in passed][:_OPTIONS])
        if not options:
            return TextDelta(STOPPED if passed else f'{NO_TOOL} Ask "What can you do?" for examples.')
        listed = " ".join(f"{place}. {each.purpose}." for place, each in enumerate(options, 1))
        begun = f"{STOPPED} Did you mean one of these?" if passed else f"{NO_TOOL} The closest I have:"
        told = f"{begun} {listed} Say a number to choose one."
        self._state.question = PendingQuestion(ExpectedReply.CHOICE, options, told, text, passed=passed)
        return TextDelta(told)

    def take_results(self, answers: Sequence[ToolResult]) -> AnswerPart:
        """Continue with the results of all calls of one answer."""
        tool_id, envelopes = answers[0].tool_id, [read_envelope(each.envelope) for each in answers]
        envelope = envelopes[0]
        if len(envelopes) > 1 and not all(each.get("error") for each in envelopes):
            found = [each.get("data") for each in envelopes]
            envelope = {"data": results.merged(self._searched, found, self._state.request)}
        if envelope.get("error") and self._fallback:
            # The whole text could not be fetched; the search result answers as well.
            told, fetch = self._fallback, None
        else:
            told = self.describe(tool_id, envelope)
            fetch = self._whole_record(tool_id)
        self._fallback = told if fetch is not None else ""
        return fetch or TextDelta(told)

    def _whole_record(self, tool_id: str) -> ToolCalls | None:
        """Return the call that fetches the text of the best result, if the search gave only a part of it."""
        context, last = self._context, self._state.last
        if last is None or not is_search(last.tool) or last.tool.id != tool_id:
            return None
        best = results.best_sentences(self._state.request, self._state.records, context.style)
        if best is None:
            return None
        self._state.topic = results.title_of(best[0])
        if context.style.spoken or not results.is_cut_off(best[0]):
            return None
        fetch = results.fetch_record(context.tools, last.tool, best[0])
        return None if fetch is None else ToolCalls((_tool_call(*fetch),))

    def describe(self, tool_id: str, envelope: Envelope) -> str:
        """Return the result of a call in words."""
        state, error = self._state, envelope.get("error")
        replaces = state.card is not None and state.card.tool.id == tool_id
        state.take_result(tool_id, envelope)
        if is_waiting(envelope):
            before = " The previous card is still open; decline it if this one replaces it."
            return (
                f"This is waiting for your approval; nothing has been done yet.{before if replaces else ''}"
            )
        if isinstance(error, Mapping):
            return results.describe_failure(error, self._context.style)
        args = state.last.args if state.last is not None else None
        told = results.describe_result(envelope.get("data"), state.request, self._context.style, args)
        state.answers.append((state.request, told))
        return told

    def recall(self, text: str) -> TextDelta | None:
        """Repeat the answer to the closest earlier request, if that is close enough to the question."""
        answers, embed = self._state.answers, self._context.style.embed
        if not answers or not asks_for_facts(text):
            return None
        near = embed([f"{request}: {told}"[:_READ] for request, told in answers]) @ embed([text])[0]
        place = len(near) - 1 - int(near[::-1].argmax())
        least = _SAME_PRONOUN if refers_back(text) else _SAME
        return TextDelta(answers[place][1]) if near[place] >= least else None


def _tool_call(tool: Tool, args: Mapping[str, Any]) -> ToolCall:
    return ToolCall(tool.id, orjson.dumps(nest(args)).decode(), f"local-{secrets.token_hex(8)}")


def _is_change(last: LastCall, found: GroundedArguments, message: UserMessage) -> bool:
    """Return whether the words change the last call rather than begin another one."""
    if time_change(message.text) is not None:
        return True
    only_values = not untyped(last.tool, message) - stems(" ".join(map(str, found.args.values())))
    complete = found.missing is None and not found.unusable and not found.guessed
    if complete and asks_for_facts(message.text) and not is_continuation(message.text):
        return False  # A whole question, such as "what time is it in Tokyo?".
    if (complete and not only_values) or not (last.waiting or only_values):
        return False
    given = sum(each.name in found.args for each in last.tool.required)
    few = len(message.text.split()) <= CHANGE
    return few or (last.waiting and given * 2 <= len(last.tool.required))
