"""One conversation: a tool is chosen, its arguments are checked, missing ones asked for, results told."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jackfield.transport.protocol import Opening, ToolResult, TransportError

from jackfield_local.agent.decider import context_lines
from jackfield_local.agent.decision import Decision, written_call, written_words
from jackfield_local.agent.grounding import Grounded, find, ground
from jackfield_local.agent.memory import Proposal, is_declined, outcome_in
from jackfield_local.agent.parameters import Kind, Parameter, Tool, flat
from jackfield_local.agent.proposals import (
    CHANGE,
    NO_TOOL,
    STOPPED,
    Proposals,
    Question,
    Setting,
    is_own_zone,
)
from jackfield_local.agent.router import Act
from jackfield_local.agent.searches import first_search
from jackfield_local.agent.texts import is_handed_over, is_search, reply, unexplained, untyped
from jackfield_local.language.durations import shift
from jackfield_local.language.numbers import ORDINALS, WORDS, amounts
from jackfield_local.language.questions import agrees, asks_for_facts, is_question, refuses
from jackfield_local.language.words import spoken_name, stem, stems, words
from jackfield_local.mind import Thought, Words

_log = logging.getLogger(__name__)

_ABOUT = 0.15
"""Words that give a tool none of its values are about it if they are at least so near to its examples."""

_CLEARLY_ABOUT = 0.3
"""The same for a tool that needs no value, which is called at once."""

_THE_SAME = 0.5
"""A deed is what a tool does if it has the same verb and is at least so near to its words."""

_CLAIM = re.compile(r"\bI(?:['\u2019]ve| have| just|['\u2019]ll| will| am going to)\b", re.IGNORECASE)
"""The model says of itself that it did or will do something; it never did."""

_TEXT_ONLY = "I can do that only in a text conversation."
_STOP = "All right."
_REPLIES = {
    Act.GREET: "Hello! What can I do for you?",
    Act.THANK: "You're welcome.",
    Act.IDENTITY: "I am Jackfield's agent on this machine. I choose tools for what you ask; "
    "I am not a language model.",
    Act.AGREE: "There is nothing to decide at the moment. What can I do for you?",
    Act.DISAGREE: _STOP,
}


class AgentDialogue(Proposals):
    """Decides with the model as soon as it is ready, and with the router until then."""

    def __init__(self, opening: Opening, setting: Setting) -> None:
        super().__init__(opening, setting)
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
        if thoughts := await self._in_thread(self._at_once, question, text):
            for thought in thoughts:
                yield thought
            return
        if question is not None and question.options:
            question = None  # Nothing was chosen; it is no question for a value.
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
        self._question = self._form = None
        tool = next((each for each in self._setting.tools if each.id == tool_id), None)
        if tool is None:
            yield Words(NO_TOOL)
            return
        args = flat(values, tool.parameters)
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
            yield Words(STOPPED)
        elif learned:
            yield Words(learned)

    def interrupted(self, heard: str) -> None:
        """The last answer was cut short; a question that nobody heard does not wait for an answer."""
        if not heard.strip():
            self._question = None

    async def _in_thread(self, think: Callable[..., list[Thought]], *args: object) -> list[Thought]:
        """Sentence embeddings take a while, and the event loop must not wait for them.

        A thread cannot be stopped: an interrupted answer waits for it, and leaves no question behind.
        """
        running = asyncio.create_task(asyncio.to_thread(think, *args))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait((running,))
            self._question = None
            raise

    async def _decided(self, text: str, question: Question | None) -> list[Thought]:
        """What follows from the model's decision, or from the router's where no model can make one."""
        model = self._setting.model
        if model is not None and model.ready:
            try:
                decision = await model.decide(self._memory.turns, self._context(question), text)
            except TransportError as error:
                _log.warning("the router decides, as the model could not: %s", error)
            else:
                return await self._in_thread(self._carry_out, decision, text, question)
        return await self._in_thread(self._route, text, question)

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

    # What needs no decision.

    def _at_once(self, question: Question | None, text: str) -> list[Thought]:
        """What needs no decision: a word to stop, the reply to a question, what only text can do."""
        act = self._setting.router.act(text)
        if question is not None and question.options and (chosen := _chosen(question.options, text)):
            self._said = question.said
            return self._propose(chosen, question.said, None)
        if refuses(text) and (question is not None or self._form is not None):
            passed = (*question.passed, *(question.options or (question.tool,))) if question else ()
            passed, self._form = (*passed, *filter(None, [self._form])), None
            return [self._offer(question.said if question else self._memory.asked, passed)]
        if act is Act.STOP:
            self._form = None
            last = self._memory.last
            waits = " The card still waits for your decision." if last is not None and last.waiting else ""
            # Whether anything was done before is not for this answer to say.
            return [Words("" if self._setting.manner.spoken else f"{_STOP}{waits}")]
        self._form = None
        if question is not None and (thought := self._reply(question, text)) is not None:
            return [thought]
        if self._setting.router.is_text_only(self._speech(text)):
            self._memory.note(text, written_words(_TEXT_ONLY))
            return [Words(_TEXT_ONLY)]
        return []

    def _reply(self, question: Question, text: str) -> Thought | None:
        """What follows from the reply to a question; nothing where the words are a new request."""
        if question.parameter is None:
            agreed = agrees(text) and not question.options
            return self._call(question.tool, question.args) if agreed else None
        found = self._filled(question, question.parameter, text)
        if found is None:
            return None
        tool = question.tool
        self._memory.note(text, written_call(tool.id, found.args))
        if found.missing is None and tool.writes and not (tool.confirmed or self._model_decides):
            return self._confirm(tool, found.args)
        return self._act(tool, found, question)

    def _filled(self, question: Question, parameter: Parameter, text: str) -> Grounded | None:
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

    def _route(self, text: str, question: Question | None) -> list[Thought]:
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

    def _goes_on(self, last: Proposal, tool: Tool | None, text: str) -> bool:
        """Whether a few words only change values of the last call, as in "and on Friday?"."""
        few = last.recent and len(text.split()) <= CHANGE
        if not few or is_search(last.tool) or (tool is not None and not is_search(tool)):
            return False
        speech = replace(self._speech(text), earlier=())
        found = find(last.tool, speech, last.args)
        changed = {name for name, value in found.args.items() if value != last.args.get(name)}
        sure = changed - found.guessed if last.tool.writes else changed
        return bool(sure) and not unexplained(last.tool, speech, found.args.values())

    # With the model.

    def _carry_out(self, decision: Decision | None, text: str, question: Question | None) -> list[Thought]:
        decision = self._amended(decision, text)
        if decision is None:
            return [Words(NO_TOOL)]
        if decision.tool is None:
            self._memory.leave()
            self._memory.note(text, written_words(decision.text))
            return [Words(self._words(decision, text))]
        tool, hints = decision.tool, decision.args or {}
        asks = tool.writes and question is None
        better = self._setting.router.better(tool, self._speech(text)) if asks else None
        if better is not None:
            # Where the two disagree about something that cannot be undone, the user is asked.
            return self._propose(better, text, None)
        found = self._grounded(tool, hints, text, question)
        self._memory.note(text, written_call(tool.id, hints))
        self._memory.asked = text
        if question is None and not self._is_meant(tool, found, text):
            search = first_search(self._setting.tools) if asks_for_facts(text) else None
            if search is None:
                return [Words(NO_TOOL)]
            tool, found = search, ground(search, {}, self._speech(text))
        if is_search(tool) and asks_for_facts(text):
            # Every filter can hide the answer; `searches` narrows to what the question names.
            asked = {each.name: found.args[each.name] for each in tool.required if each.name in found.args}
            found = replace(found, args=asked)
        if found.missing is None and found.guessed and tool.writes and not tool.confirmed:
            return [self._confirm(tool, found.args)]
        return [self._act(tool, found, question)]

    def _amended(self, decision: Decision | None, text: str) -> Decision | None:
        """The model's decision, or the one that the words leave no doubt about."""
        last = self._memory.last
        if last is not None and shift(text) is not None and len(text.split()) <= CHANGE:
            return Decision(last.tool, {})
        if decision is not None and not decision.refused:
            return decision
        tool = self._identified(text) or (self._denied(decision.text) if decision is not None else None)
        if tool is None and asks_for_facts(text):
            tool = first_search(self._setting.tools)
        return decision if tool is None else Decision(tool, {})

    def _denied(self, deed: str) -> Tool | None:
        """The tool that does, in its own words, what the model says that no tool does."""
        verb = stem(([*words(deed)] or [""])[0])
        embed = self._setting.manner.embed
        for tool in self._setting.tools:
            texts = [spoken_name(tool.id), tool.description, *(each.says for each in tool.guide.examples)]
            if verb in stems(" ".join(texts)) and float((embed(texts) @ embed([deed])[0]).max()) >= _THE_SAME:
                return tool
        return None

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
        if not all(is_own_zone(tool, name, value, own) for name, value in found.args.items()):
            return True
        speech = self._speech(text)
        strange = unexplained(tool, speech, ())
        if asked and len(strange) * 3 >= len(untyped(tool, speech)) > 0:
            return False
        texts = [tool.description, *(each.says for each in tool.guide.examples)]
        embed = self._setting.manner.embed
        near = float((embed(texts) @ embed([text])[0]).max())
        return near >= (_ABOUT if tool.required and not asked else _CLEARLY_ABOUT)

    def _context(self, question: Question | None) -> str:
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
        return NO_TOOL if numbers or _CLAIM.search(decision.text) else decision.text

    def _help(self) -> str:
        purposes = [each.purpose for each in self._setting.tools]
        if self._setting.manner.spoken:
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


def _is_left(question: Question, text: str) -> bool:
    """Whether a question for a text to hand over is left open: a few words are another request."""
    asked = question.parameter
    return asked is not None and is_handed_over(question.tool, asked) and len(text.split()) <= CHANGE
