"""One conversation: chooses a tool, checks its arguments, asks for missing ones, describes results."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jackfield.transport.events import TextDelta
from jackfield.transport.protocol import ConnectionConfig, ToolResult, TransportError
from jackfield_language.numbers import amounts, chosen_place, time_change
from jackfield_language.questions import (
    agrees,
    asks_for_facts,
    corrected,
    is_continuation,
    is_question,
    refers_to_person,
    refuses,
    removes,
    rules_out,
)
from jackfield_language.words import stem, stems, words

from jackfield_local.agent.calls import CHANGE, NO_TOOL, STOPPED, AgentContext, CallPlanner
from jackfield_local.agent.grounding import ground
from jackfield_local.agent.help import help_text
from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.prompt import Decision, written_call, written_words
from jackfield_local.agent.router import NO, STOP, YES, texts_of
from jackfield_local.agent.state import (
    DECLINED,
    DialogueState,
    ExpectedReply,
    LastCall,
    PendingQuestion,
    outcome_in,
)
from jackfield_local.agent.texts import is_search, reply, unexplained
from jackfield_local.agent.tools import Tool, ValueType, flatten
from jackfield_local.connection import AnswerPart

_log = logging.getLogger(__name__)

_CLAIM = re.compile(r"\bI(?:['\u2019]ve| have| just|['\u2019]ll| will| am going to)\b", re.IGNORECASE)
"""Phrases in which the model falsely claims that it did or will do something."""

_STRAY = 1
"""How many words unknown to all tools may be in a change to a card, which the user has to approve anyway."""

_SAID_REPLIES = (ExpectedReply.VALUE, ExpectedReply.CONSENT)
_WAITS = " The card is still waiting for your decision."
_UNDECIDED = "I cannot decide for you: please approve or decline the card."
_KEPT = " The last action was not undone."
_TEXT_ONLY = "I can do that only in a text conversation."


class AgentDialogue:
    """Decides with the model as soon as it is ready, and with the router until then."""

    def __init__(self, opening: ConnectionConfig, context: AgentContext) -> None:
        self._context = context
        self.state = DialogueState()
        self._calls = CallPlanner(context, self.state, forms=opening.forms and not context.style.spoken)
        self._news = ""
        self._explained = False
        for each in opening.history:
            if each.speaker == "assistant":
                self.state.take_context(each.text)

    async def answer(self, text: str) -> AsyncIterator[AnswerPart]:
        """Answer a message from the user."""
        text = text.strip()
        if not text:
            return
        self.state.said = text
        question, self.state.question = self.state.question, None
        parts = await self._in_thread(self._at_once, question, text)
        if not parts:
            if (note := self._progress()) is not None:
                yield note
            is_open = question is not None and question.expects in _SAID_REPLIES
            parts = await self._decided(text, question if is_open else None)
        for part in parts:
            yield part

    async def continue_with(self, results: Sequence[ToolResult]) -> AsyncIterator[AnswerPart]:
        """Continue with the results of all calls of the last answer."""
        yield await asyncio.to_thread(self._calls.take_results, results)

    async def submit_form(self, tool_id: str, values: Mapping[str, Any]) -> AsyncIterator[AnswerPart]:
        """Continue with a tool's form that the user has completed."""
        self.state.question = None
        tool = next((each for each in self._context.tools if each.id == tool_id), None)
        if tool is None:
            yield TextDelta(NO_TOOL)
            return
        args = flatten(values, tool.parameters)
        self.state.note(tool.purpose, written_call(tool.id, args))
        yield self._calls.call(tool, args)

    def add_context(self, text: str) -> None:
        """Add context that the user did not say."""
        self._news = text
        self.state.take_context(text)

    async def respond(self) -> AsyncIterator[AnswerPart]:
        """Respond to the most recently added context."""
        news, self._news = self._news, ""
        if (outcome := outcome_in(news)) is not None:
            yield TextDelta(await asyncio.to_thread(self._calls.describe, *outcome))
        elif news:
            yield TextDelta(STOPPED if DECLINED.match(news) else news)

    def interrupted(self, *, heard: bool) -> None:
        """Record that the last answer was cut short; a question that was not heard expects no reply."""
        if not heard:
            self.state.question = None

    async def _in_thread(self, think: Callable[..., list[AnswerPart]], *args: object) -> list[AnswerPart]:
        """Run work off the event loop, which must not wait for sentence embeddings.

        A thread cannot be stopped: an interrupted answer waits for it and leaves no open question.
        """
        running = asyncio.create_task(asyncio.to_thread(think, *args))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait((running,))
            self.state.question = None
            raise

    async def _decided(self, text: str, question: PendingQuestion | None) -> list[AnswerPart]:
        """Return the answer that follows from the model's decision, or else from the router's."""
        model, state = self._context.model, self.state
        decision = None
        if model is not None and model.ready:
            try:
                decision = await model.decide(state.exchanges, state.context_lines(question), text)
            except TransportError as error:
                _log.warning("the router decides, because the model could not: %s", error)
        return await self._in_thread(self._carry_out, decision, text, question)

    @property
    def _model_decides(self) -> bool:
        return self._context.model is not None and self._context.model.ready

    def _progress(self) -> TextDelta | None:
        """Report once, in text only, that the model is being prepared."""
        model = self._context.model
        if model is None or model.ready or self._explained or self._context.style.spoken:
            return None
        self._explained = True
        return TextDelta(
            f"(The language model is getting ready: {model.progress:.0%}. "
            "Until then I choose tools without it.)\n\n"
        )

    def _at_once(self, question: PendingQuestion | None, text: str) -> list[AnswerPart]:
        """Handle requests that need no decision: replies to a question, "stop", and text-only tools."""
        stops = self._context.router.act(text) is STOP or rules_out(text)
        if question is not None and (parts := self._replied(question, text, stops=stops)):
            return parts
        if stops:
            return [TextDelta("" if self._context.style.spoken else f"{STOP.reply}{self._unchanged(text)}")]
        if question is not None and (part := self._reply(question, text)) is not None:
            return [part]
        if self._context.router.is_text_only(self._calls.message(text)):
            self.state.note(text, written_words(_TEXT_ONLY))
            return [TextDelta(_TEXT_ONLY)]
        return []

    def _unchanged(self, text: str) -> str:
        """Return what "stop" leaves as it is: the reply must not suggest that anything was done or undone."""
        if self.state.card is not None:
            return _WAITS
        last = self.state.last
        is_written = last is not None and last.tool.writes and last.done
        return _KEPT if is_written and removes(text) else ""

    def _replied(self, question: PendingQuestion, text: str, *, stops: bool) -> list[AnswerPart]:
        """Handle the choice of an offered tool, values for a form, and "no"."""
        place = chosen_place(text, len(question.tools))
        if question.expects is ExpectedReply.CHOICE and place:
            self.state.said = question.said
            return self._calls.propose(question.tools[place - 1], question.said)
        if question.expects is ExpectedReply.FORM and self._completes(question, text):
            return self._calls.propose(question.tool, corrected(text) or text, question)
        offers = refuses(text) and not stops
        return [self._calls.offer(question.said, (*question.passed, *question.tools))] if offers else []

    def _completes(self, question: PendingQuestion, text: str) -> bool:
        """Return whether the user's words give or correct values in the form that was just shown."""
        form, said = LastCall(question.tool, question.args), corrected(text) or text
        if is_question(text) or rules_out(text) or len(text.split()) > CHANGE:
            return False
        lacking = [each.type for each in form.tool.required if each.name not in form.args]
        new = self._context.router.decide(self._calls.message(said))
        # A greeting or thanks has a reply, and is not the missing text.
        completed = lacking == [ValueType.TEXT] and new == Decision()
        return time_change(text) is not None or completed or self._has_values(form, said, _STRAY)

    def _reply(self, question: PendingQuestion, text: str) -> AnswerPart | None:
        """Handle the reply to a question; None if the words are a new request."""
        tool, parameter = question.tool, question.parameter
        if question.expects is ExpectedReply.CONSENT and agrees(text):
            return self._calls.call(tool, question.args)
        is_text = parameter is not None and parameter.type is ValueType.TEXT
        if parameter is None or (is_text and self._model_decides) or is_question(text):
            return None
        message = replace(self._calls.message(text), earlier=(), before=question.said)
        value: Any = None
        if is_text:
            value = reply(tool, parameter, message)
        elif parameter.type is ValueType.NUMBER and len(said := amounts(text)) == 1:
            value = said[0].value
        hints = {parameter.name: [value] if parameter.many and value else value}
        found = ground(tool, hints, message, question.args)
        if dict(found.args) == dict(question.args):
            return None
        found = replace(found, guessed=found.guessed - {parameter.name})  # It answers the question.
        self.state.note(text, written_call(tool.id, found.args))
        doubtful = tool.writes and not tool.confirmed and not self._model_decides
        return self._calls.act(tool, found, question, doubtful=doubtful)

    def _carry_out(
        self, decision: Decision | None, text: str, question: PendingQuestion | None
    ) -> list[AnswerPart]:
        """Answer according to the decision of the model, or else of the router, which gives no hints."""
        router, message = self._context.router, self._calls.message(text)
        decision = self._amended(decision or router.decide(message), message, question)
        tool, hints = decision.tool, decision.args
        if tool is None:
            if (recalled := self._calls.recall(text)) is not None:
                return [recalled]
            self.state.leave_last()
            self.state.note(text, written_words(decision.text))
            return [self._words(decision, text)]
        if hints is None:
            return self._calls.propose(tool, text, question)
        changes = self.state.card is not None and self.state.card.tool is tool
        if tool.writes and not (question or changes) and (better := router.better(tool, message)):
            # If model and router disagree about something that cannot be undone, the user is asked.
            return self._calls.propose(better, text)
        found = self._calls.arguments(tool, hints, text, question)
        before = self.state.previous(tool)
        new = {name: each for name, each in found.args.items() if not before or before.args.get(name) != each}
        self._calls.note_request(text, written_call(tool.id, hints))
        answers = found.unusable or (question is not None and question.tool is tool)
        if not answers and not router.is_meant(tool, replace(found, args=new), message):
            if router.search is None or not asks_for_facts(text):
                return [self._calls.recall(text) or TextDelta(NO_TOOL)]
            tool, found = router.search, ground(router.search, {}, message)
        return [self._calls.act(tool, found, question)]

    def _amended(
        self, decision: Decision, message: UserMessage, question: PendingQuestion | None
    ) -> Decision:
        """Return the decision, or a different one if the user's words clearly call for that one."""
        if (tool := self._changed(decision, message.text)) is not None:
            return decision.about(tool)
        if question is not None and decision == Decision():
            return decision.about(question.tool)  # Neither a reply nor a request: ask once more.
        if not decision.refused or (tool := self._context.router.decide(message).tool) is None:
            return decision
        # A question is looked up; an action needs a tool whose texts contain the same verb.
        verb = {stem(each) for each in words(decision.text)[:1]}
        known = asks_for_facts(message.text) or verb & stems(" ".join(texts_of(tool)))
        sure = ground(tool, {}, message).certain
        complete = tool.required and not tool.writes and all(each.name in sure for each in tool.required)
        return decision.about(tool) if known or complete else decision

    def _changed(self, decision: Decision, text: str) -> Tool | None:
        """Return the tool of the call that a few words change or continue: of the open card or last call."""
        last, card = self.state.last, self.state.card
        if self.state.topic and refers_to_person(text) and asks_for_facts(text):
            return self._context.router.search
        call = card or last
        if call is None or len(text.split()) > CHANGE:
            return None
        if time_change(text) is not None or (
            call is card and not is_question(text) and self._has_values(call, corrected(text) or text, _STRAY)
        ):
            return call.tool
        if last is None or not last.recent:
            return None
        if is_search(last.tool):
            return last.tool if is_continuation(text) else None
        unclear = decision.tool is None or is_search(decision.tool)
        return last.tool if unclear and self._has_values(last, text) else None

    def _has_values(self, last: LastCall, text: str, strays: int = 0) -> bool:
        """Return whether words only give other values of a call, as in "and on Friday?"."""
        if is_search(last.tool):
            return False
        message = replace(self._calls.message(text), earlier=())
        found = ground(last.tool, None, message, last.args)
        changed = {name for name, value in found.args.items() if value != last.args.get(name)}
        sure = changed - found.guessed if last.tool.writes else changed
        strange = unexplained(last.tool, message, found.args.values())
        others = {word for each in self._context.tools for word in each.vocabulary}
        return bool(sure) and len(strange) <= strays and not strange & others

    def _words(self, decision: Decision, text: str) -> TextDelta:
        if decision.helps:
            context = self._context
            spoken = context.style.spoken
            return TextDelta(help_text(context.tools, context.router, self._calls.message, spoken=spoken))
        if decision.refused:
            return TextDelta(f"I cannot {decision.text.rstrip('.')}: I have no tool for that.")
        if self.state.card is not None and (act := self._context.router.act(text)) in (YES, NO):
            # Only the card decides about its call, whatever the user writes.
            return TextDelta(_UNDECIDED if act is YES else f"{act.reply}{_WAITS}")
        if not decision.text:
            return self._calls.offer(text)
        numbers = set(re.findall(r"\d+", decision.text)) - set(re.findall(r"\d+", text))
        # An invented fact or action is worse than no answer.
        return TextDelta(NO_TOOL if numbers or _CLAIM.search(decision.text) else decision.text)
