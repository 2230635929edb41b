"""One conversation: a tool is chosen, its arguments are checked, missing ones asked for, results told."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jackfield.transport.protocol import ConnectionConfig, ToolResult, TransportError

from jackfield_local.agent.calls import CHANGE, NO_TOOL, STOPPED, CallPlanner, Setting
from jackfield_local.agent.decision import Decision, written_call, written_words
from jackfield_local.agent.grounding import Grounded, ground
from jackfield_local.agent.parameters import Kind, Parameter, Tool, flat
from jackfield_local.agent.router import DialogueAct, texts_of
from jackfield_local.agent.state import Call, DialogueState, Expects, Question, is_declined, outcome_in
from jackfield_local.agent.texts import is_search, reply, unexplained
from jackfield_local.language.durations import shift
from jackfield_local.language.numbers import ORDINALS, WORDS, amounts
from jackfield_local.language.questions import agrees, asks_for_facts, is_continuation, is_question, refuses
from jackfield_local.language.words import stem, stems, words
from jackfield_local.mind import Thought, Words

_log = logging.getLogger(__name__)

_CLAIM = re.compile(r"\bI(?:['\u2019]ve| have| just|['\u2019]ll| will| am going to)\b", re.IGNORECASE)
"""The model says of itself that it did or will do something; it never did."""

_TEXT_ONLY = "I can do that only in a text conversation."
_REPLIES = {
    DialogueAct.GREET: "Hello! What can I do for you?",
    DialogueAct.THANK: "You're welcome.",
    DialogueAct.IDENTITY: "I am Jackfield's agent on this machine. I choose tools for what you ask; "
    "I am not a language model.",
    DialogueAct.AGREE: "There is nothing to decide at the moment. What can I do for you?",
    DialogueAct.DISAGREE: "All right.",
}


class AgentDialogue:
    """Decides with the model as soon as it is ready, and with the router until then."""

    def __init__(self, opening: ConnectionConfig, setting: Setting) -> None:
        self._setting = setting
        self.state = DialogueState()
        self._calls = CallPlanner(setting, self.state, forms=opening.forms and not setting.style.spoken)
        self._learned = ""
        self._explained = False
        for each in opening.history:
            if each.speaker == "assistant":
                self.state.recall(each.text)

    async def answer(self, text: str) -> AsyncIterator[Thought]:
        """The user said this."""
        text = text.strip()
        if not text:
            return
        self.state.said = text
        question, self.state.question = self.state.question, None
        thoughts = await self._in_thread(self._at_once, question, text)
        if not thoughts:
            if (add_preview_note := self._getting_ready()) is not None:
                yield add_preview_note
            is_open = question is not None and question.expects in (Expects.VALUE, Expects.CONSENT)
            thoughts = await self._decided(text, question if is_open else None)
        for thought in thoughts:
            yield thought

    async def go_on(self, results: Sequence[ToolResult]) -> AsyncIterator[Thought]:
        """The calls of the last message are answered."""
        yield await asyncio.to_thread(self._calls.take_results, results)

    async def submit(self, tool_id: str, values: Mapping[str, Any]) -> AsyncIterator[Thought]:
        """The user completed the form of a tool."""
        self.state.question = None
        tool = next((each for each in self._setting.tools if each.id == tool_id), None)
        if tool is None:
            yield Words(NO_TOOL)
            return
        args = flat(values, tool.parameters)
        self.state.note(tool.purpose, written_call(tool.id, args))
        yield self._calls.call(tool, args)

    def learn(self, text: str) -> None:
        """Context that the user did not say."""
        self._learned = text
        self.state.recall(text)

    async def respond(self) -> AsyncIterator[Thought]:
        """Speak of what was last learned."""
        learned, self._learned = self._learned, ""
        if (outcome := outcome_in(learned)) is not None:
            yield Words(await asyncio.to_thread(self._calls.tell, *outcome))
        elif learned:
            yield Words(STOPPED if is_declined(learned) else learned)

    def interrupted(self, heard: str) -> None:
        """The last answer was cut short; a question that nobody heard does not wait for an answer."""
        if not heard.strip():
            self.state.question = None

    async def _in_thread(self, think: Callable[..., list[Thought]], *args: object) -> list[Thought]:
        """Sentence embeddings take a while, and the event loop must not wait for them.

        A thread cannot be stopped: an interrupted answer waits for it, and leaves no question behind.
        """
        running = asyncio.create_task(asyncio.to_thread(think, *args))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait((running,))
            self.state.question = None
            raise

    async def _decided(self, text: str, question: Question | None) -> list[Thought]:
        """What follows from the model's decision, or from the router's where no model can make one."""
        model, state = self._setting.model, self.state
        if model is not None and model.ready:
            try:
                decision = await model.decide(state.turns, state.context_lines(question), text)
            except TransportError as error:
                _log.warning("the router decides, as the model could not: %s", error)
            else:
                return await self._in_thread(self._carry_out, decision, text, question)
        return await self._in_thread(self._route, text, question)

    @property
    def _model_decides(self) -> bool:
        return self._setting.model is not None and self._setting.model.ready

    def _getting_ready(self) -> Words | None:
        """Says once that the model is being prepared; not aloud."""
        model = self._setting.model
        if model is None or model.ready or self._explained or self._setting.style.spoken:
            return None
        self._explained = True
        return Words(
            f"(The language model is getting ready: {model.progress:.0%}. "
            "Until then I choose tools without it.)\n\n"
        )

    # What needs no decision.

    def _at_once(self, question: Question | None, text: str) -> list[Thought]:
        """What needs no decision: the reply to a question, a word to stop, what only text can do."""
        if question is not None:
            if question.expects is Expects.CHOICE and (chosen := _chosen(question.tools, text)):
                self.state.said = question.said
                return self._calls.propose(chosen, question.said, None)
            if refuses(text):
                return [self._calls.offer(question.said, (*question.passed, *question.tools))]
        if self._setting.router.act(text) is DialogueAct.STOP:
            # Whether anything was done before is not for this answer to say.
            waiting = self.state.last is not None and self.state.last.waiting
            told = f"All right.{' The card still waits for your decision.' if waiting else ''}"
            return [Words("" if self._setting.style.spoken else told)]
        if question is not None and (thought := self._reply(question, text)) is not None:
            return [thought]
        if self._setting.router.is_text_only(self._calls.speech(text)):
            self.state.note(text, written_words(_TEXT_ONLY))
            return [Words(_TEXT_ONLY)]
        return []

    def _reply(self, question: Question, text: str) -> Thought | None:
        """What follows from the reply to a question; nothing where the words are a new request."""
        tool = question.tool
        if question.expects is Expects.CONSENT and agrees(text):
            return self._calls.call(tool, question.args)
        found = self._filled(question, question.parameter, text) if question.parameter is not None else None
        if found is None:
            return None
        self.state.note(text, written_call(tool.id, found.args))
        return self._calls.act(tool, found, question, is_sure=self._model_decides)

    def _filled(self, question: Question, parameter: Parameter, text: str) -> Grounded | None:
        """The arguments with the reply, where the types tell that it is one."""
        if (parameter.kind is Kind.TEXT and self._model_decides) or is_question(text):
            return None
        speech = replace(self._calls.speech(text), earlier=(), before=question.said)
        value: Any = None
        if parameter.kind is Kind.TEXT:
            value = reply(question.tool, parameter, speech)
        elif parameter.kind is Kind.NUMBER and len(said := amounts(text)) == 1:
            value = said[0].value
        hints = {parameter.name: [value] if parameter.many and value else value}
        found = ground(question.tool, hints, speech, question.args)
        if dict(found.args) == dict(question.args):
            return None
        return replace(found, guessed=found.guessed - {parameter.name})  # It answers the question.

    def _continued(self, text: str) -> Tool | None:
        """The tool of the last call, where the words move its time or go on with a question."""
        last = self.state.last
        if last is None or len(text.split()) > CHANGE:
            return None
        goes_on = last.recent and is_search(last.tool) and is_continuation(text)
        return last.tool if goes_on or shift(text) is not None else None

    # Without the model.

    def _route(self, text: str, question: Question | None) -> list[Thought]:
        router, last = self._setting.router, self.state.last
        tool = self._continued(text) or router.route(self._calls.speech(text))
        if last is not None and self._goes_on(last, tool, text):
            tool = last.tool
        elif question is not None and tool is None:
            # Words that are no reply and no request of their own: ask once more.
            tool = question.tool
        if tool is not None:
            return self._calls.propose(tool, text, question)
        self.state.note(text, written_words(""))
        self.state.leave_last()
        if (act := router.act(text)) is None:
            return [self._calls.offer(text)]
        return [Words(self._help() if act is DialogueAct.HELP else _REPLIES[act])]

    def _goes_on(self, last: Call, tool: Tool | None, text: str) -> bool:
        """Whether a few words only change values of the last call, as in "and on Friday?"."""
        few = last.recent and len(text.split()) <= CHANGE
        if not few or is_search(last.tool) or (tool is not None and not is_search(tool)):
            return False
        speech = replace(self._calls.speech(text), earlier=())
        found = ground(last.tool, None, speech, last.args)
        changed = {name for name, value in found.args.items() if value != last.args.get(name)}
        sure = changed - found.guessed if last.tool.writes else changed
        return bool(sure) and not unexplained(last.tool, speech, found.args.values())

    # With the model.

    def _carry_out(self, decision: Decision | None, text: str, question: Question | None) -> list[Thought]:
        decision = self._amended(decision, text)
        if decision is None:
            return [Words(NO_TOOL)]
        if decision.tool is None:
            self.state.leave_last()
            self.state.note(text, written_words(decision.text))
            return [Words(self._words(decision, text))]
        tool, hints = decision.tool, decision.args or {}
        router, speech = self._setting.router, self._calls.speech(text)
        if tool.writes and question is None and (better := router.better(tool, speech)):
            # Where the two disagree about something that cannot be undone, the user is asked.
            return self._calls.propose(better, text, None)
        found = self._calls.grounded(tool, hints, text, question)
        self.state.note(text, written_call(tool.id, hints))
        self.state.request = text
        answers = question is not None and question.tool is tool
        if not answers and not router.is_meant(tool, found, speech):
            if router.search is None or not asks_for_facts(text):
                return [Words(NO_TOOL)]
            tool, found = router.search, ground(router.search, {}, speech)
        return [self._calls.act(tool, found, question)]

    def _amended(self, decision: Decision | None, text: str) -> Decision | None:
        """The model's decision, or the one that the words leave no doubt about."""
        if (tool := self._continued(text)) is not None:
            return Decision(tool, {})
        if decision is None or not decision.refused:
            return decision
        speech = self._calls.speech(text)
        tool = self._setting.router.route(speech)
        if tool is None:
            return decision
        # A question is looked up, and a deed is done by a tool that calls it by the same verb.
        verb = {stem(each) for each in words(decision.text)[:1]}
        known = asks_for_facts(text) or verb & stems(" ".join(texts_of(tool)))
        sure = ground(tool, {}, speech).certain
        complete = tool.required and not tool.writes and all(each.name in sure for each in tool.required)
        return Decision(tool, {}) if known or complete else decision

    def _words(self, decision: Decision, text: str) -> str:
        if decision.helps:
            return self._help()
        if decision.refused:
            return f"I cannot {decision.text.rstrip('.')}: no tool here does that."
        numbers = set(re.findall(r"\d+", decision.text)) - set(re.findall(r"\d+", text))
        # A fact or a deed that the model made up is worse than no answer.
        return NO_TOOL if numbers or _CLAIM.search(decision.text) else decision.text

    def _help(self) -> str:
        purposes = [each.purpose for each in self._setting.tools]
        if self._setting.style.spoken:
            return f"I have {len(purposes)} tools. For example: {'; '.join(purposes[:3])}."
        return "This is what I can do:\n" + "\n".join(f"- {each}." for each in purposes)


def _chosen(options: Sequence[Tool], text: str) -> Tool | None:
    """The option that a few words count out."""
    heard = words(text)
    counted = [
        ORDINALS.get(each) or WORDS.get(each) or (int(each) if each.isdecimal() else 0) for each in heard
    ]
    rest = [word for word, number in zip(heard, counted, strict=True) if not number]
    places = [number for number in counted if number]
    alone = len(places) == 1 and set(rest) <= {"number", "option", "the", "one", "please"}
    return options[places[0] - 1] if alone and places[0] <= len(options) else None
