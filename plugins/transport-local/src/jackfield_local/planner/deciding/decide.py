"""The decision, without any effect: what was said and what is remembered in, a move out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jackfield.contract.context import Mode

from jackfield_local.language.amounts import bare_amount
from jackfield_local.language.words import spoken_name, words
from jackfield_local.planner.choosing.chooser import CERTAIN, CLEAR, Weighed, Weighing
from jackfield_local.planner.choosing.small_talk import Talk
from jackfield_local.planner.deciding.asking import ask_for, ask_which, beyond_me, cannot_ask
from jackfield_local.planner.deciding.beyond import beyond_the_planner
from jackfield_local.planner.deciding.following import follow
from jackfield_local.planner.deciding.moves import Call, Move, Question, Say
from jackfield_local.planner.deciding.repeating import OFTEN_ENOUGH, again, ask_within_bounds
from jackfield_local.planner.deciding.several import Meant, wishes
from jackfield_local.planner.deciding.sharing import in_full, parted
from jackfield_local.planner.deciding.small_talk import ALL_BUT_SAID, TALK, Talking, alike
from jackfield_local.planner.deciding.talking import SEARCH_THE_WEB, not_from_the_web
from jackfield_local.planner.filling import amounts, answers
from jackfield_local.planner.filling.filler import Filled, Filler
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.asked import wonders
from jackfield_local.planner.language.parting import is_parting
from jackfield_local.planner.language.requests import (
    corrects,
    is_order,
    is_question,
    names_a_thing,
    seeks,
)
from jackfield_local.planner.language.web import on_the_web
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.manner import Manner
from jackfield_local.planner.reading.tool import Tool
from jackfield_local.planner.remembered import Remembered

POSSIBLE = 0.66
"""Below this nothing is taken, unless any question may be put to a tool."""

_ONLY_TALK = 0.8
"""Words that are so much like small talk are no answer to a question either."""

_APART = 0.2

_NO_ANSWER = frozenset((Talk.AGREEMENT, Talk.HESITATION, Talk.DOUBT))

_CLOSE = 0.02
_NEARLY = 0.05
_SAID = 1.2
"""An example that is so much alike was said as it stands, but for a word."""
_ORDERED = 0.45
_ASKED = 0.5
_IN_FULL = re.compile(
    r"\b(?:whole|full|entire|complete|everything|in detail|details|explain|summari[sz]e|read (?:me"
    r"|out|it))\b",
    re.IGNORECASE,
)


class Judgement:
    """Decides for one session."""

    def __init__(self, tools: Sequence[Tool], chooser: Weighing, mode: Mode, zone: str) -> None:
        self.tools = tools
        self._chooser = chooser
        self._talking = Talking(tools, chooser, mode)
        self._mode = mode
        self._zone = zone
        self._open = next((tool for tool in tools if tool.is_open), None)

    def decide(self, heard: Heard, remembered: Remembered) -> Move:
        """What to do with something new."""
        if not self.tools:
            return self._talking.lost(remembered)
        heard = in_full(heard, self.tools, remembered)
        weighed = self._weigh(heard, remembered)
        corrected = self._follow(heard, remembered, weighed) if corrects(heard.request) else None
        move: Move | None = self._on_the_web(heard, remembered, weighed) or corrected
        move = move or self._talking.answer(heard, remembered, weighed[0])
        if move is None and remembered.beyond(heard.request):
            move = Say(f"There are only {len(remembered.items)} of them. Which one do you mean?")
        move = move or self._follow(heard, remembered, weighed)
        if move is not None:
            return move
        chosen = self._choose(heard, weighed, remembered)
        return self._use(chosen, heard, remembered) if isinstance(chosen, Tool) else chosen

    def wishes(self, heard: Heard, remembered: Remembered) -> list[str]:
        """What is wished for in a message, one after the other."""

        def meant(text: str) -> Meant:
            said = replace(heard, text=text)
            best, *rest = self._weigh(said, remembered)
            clear = best.score >= CLEAR or (best.tool.is_open and seeks(said.request))
            beyond = not clear and any(each.beyond for each in (best, *rest))
            whole = clear and not self._filled(best.tool, said, remembered).missing
            return Meant(best.tool if clear else None, beyond, whole)

        handed = heard.payload.span.start if heard.payload else len(heard.text)
        request, text = heard.text[:handed], heard.text[handed:]
        if not self.tools or (text.startswith("\n") and len(wishes(heard.text, meant)) > 1):
            request, text = heard.text, ""
        found = wishes(request, meant) if self.tools else [request]
        found = [wish for each in found for wish in parted(replace(heard, text=each), meant)]
        return [*found[:-1], found[-1] + text]

    def resolve(self, question: Question, heard: Heard, remembered: Remembered) -> Move:
        """What to do with words that should answer a question, and may be something else."""
        if (
            question.missing is not None
            and question.missing.kind in amounts.NUMERIC
            and bare_amount(heard.request)
        ):
            return self._complete(question, heard, remembered)
        talk, like = self._chooser.small_talk(heard)
        refused = talk is Talk.AGREEMENT and words(heard.text)[:1] == ["no"]
        if like >= TALK and (talk is Talk.DROPPING or (refused and like >= _ONLY_TALK)):
            return self._talking.say(Talk.DROPPING, remembered)
        pasted = question.missing is not None and question.missing.manner is Manner.POINTED
        if like >= (TALK if pasted or is_question(heard.request) else _ONLY_TALK):
            return again(question) if talk in _NO_ANSWER else self.decide(heard, remembered)
        weighed = self._weigh(heard, remembered)
        waiting = [each for each in weighed if each.tool in question.tools]
        passed_over = question.missing is not None and not answers.gives(question.missing, heard)
        if _leads_away(heard, weighed[0], waiting[0]) or (passed_over and _is_a_wish(heard, weighed)):
            return self.decide(heard, remembered)
        if question.missing is None:
            return self._settle(question, heard, remembered, waiting)
        return self._complete(question, heard, remembered)

    def _on_the_web(self, heard: Heard, remembered: Remembered, weighed: Sequence[Weighed]) -> Move | None:
        """A search of the web; where no tool does one, that is said before another search."""
        wanted = on_the_web(heard.request)
        if wanted is None:
            return None
        said = replace(heard, text=wanted + heard.text[len(heard.request) :])
        searching = next((each.tool for each in weighed if each.tool.searches_the_web), None)
        if searching is not None:
            return self._use(searching, said, remembered)
        looked = self._filled(self._open, said, remembered) if self._open is not None else None
        if self._open is None or looked is None or looked.missing:
            return self._talking.unable(remembered, SEARCH_THE_WEB)
        return Call(self._open, looked.args, said.text, remark=not_from_the_web(self._open))

    def _follow(self, heard: Heard, remembered: Remembered, weighed: Sequence[Weighed]) -> Call | None:
        return follow(
            heard, remembered, weighed, lambda tool, said: self._filled(tool, said, remembered).args
        )

    def _weigh(self, heard: Heard, remembered: Remembered) -> list[Weighed]:
        """The tools, the likeliest first; one that ends the conversation counts only when plainly wished."""
        weighed = self._chooser.weigh(heard, remembered)
        doubtful = [each for each in weighed if each.tool.parts and not self._parting(each.tool, heard)]
        rest = [each for each in weighed if each not in doubtful]
        return [*rest, *(each._replace(score=0.0) for each in doubtful)]

    def _parting(self, tool: Tool, heard: Heard) -> bool:
        """Whether the words are a plain farewell, or an example of the tool's guide as it stands."""
        return is_parting(heard.request) or alike(self._chooser, tool, heard) >= _SAID

    def _choose(self, heard: Heard, weighed: Sequence[Weighed], remembered: Remembered) -> Tool | Move:
        weighed = [each for each in weighed if not each.tool.composed or self._plain(each.tool, heard)]
        if not weighed:
            return self._talking.lost(remembered)
        best = weighed[0]
        second = weighed[1] if len(weighed) > 1 else None
        if best.score < CLEAR and any(each.beyond for each in weighed):
            return self._talking.unable(remembered)
        if self._open is not None and self._may_be_looked_up(self._open, heard, weighed):
            return self._open
        if best.score < (POSSIBLE if not is_order(heard.request) else _ORDERED):
            return self._talking.lost(remembered)
        if second is not None and best.score < CLEAR and best.score - second.score < _CLOSE:
            tools = (best.tool, second.tool)
            return Question(ask_which(tools, self._mode), heard.text, tools)
        return best.tool

    @staticmethod
    def _may_be_looked_up(where: Tool, heard: Heard, weighed: Sequence[Weighed]) -> bool:
        best = weighed[0].score
        if best < CLEAR and (wonders(heard.request) or names_a_thing(heard.request)):
            return True
        # Of two that are as likely, looking something up harms nobody.
        near = any(each.tool is where and best - each.score < _NEARLY for each in weighed)
        return near and is_question(heard.request)

    def _plain(self, tool: Tool, heard: Heard) -> bool:
        """Whether an example of a tool that thinks things up was all but said."""
        return alike(self._chooser, tool, heard) >= ALL_BUT_SAID

    def _use(self, tool: Tool, heard: Heard, remembered: Remembered) -> Move:
        if tool.composed and tool.id not in remembered.warned_of:
            return Say(_warning(tool), warns_of=tool.id)
        filled = self._filled(tool, heard, remembered)
        if not filled.missing:
            return Call(tool, filled.args, heard.text, then=self._getter(tool, heard))
        if plainly := beyond_the_planner(tool, filled.missing, filled.args):
            return Say(plainly)
        missing = filled.missing[0]
        if missing.kind is Kind.ID and self._open is not None:
            looked = self._filled(self._open, heard, remembered)
            if not looked.missing:
                return Call(self._open, looked.args, heard.text, then=tool)
        if cannot_ask(missing):
            return Say(beyond_me(tool, missing))
        return Question(ask_for(missing, heard), heard.text, (tool,), missing, filled.known)

    def _getter(self, tool: Tool, heard: Heard) -> Tool | None:
        """The tool that fetches whole what a search finds, when the whole is wanted."""
        if not tool.is_open or not _IN_FULL.search(heard.request):
            return None
        return next((each for each in self.tools if _fetches(each)), None)

    def _settle(
        self, question: Question, heard: Heard, remembered: Remembered, waiting: Sequence[Weighed]
    ) -> Move:
        """Which of two tools was meant: by its place, or by the words that speak for it."""
        said = words(heard.text)
        place = next((n for n, names in enumerate(_PLACES) if names & set(said)), None)
        tool = question.tools[place] if place is not None else waiting[0].tool
        return self._use(tool, replace(heard, text=question.said), remembered)

    def _complete(self, question: Question, heard: Heard, remembered: Remembered) -> Move:
        """The call that waited, with what was said now."""
        tool, missing = question.tools[0], question.missing
        assert missing is not None  # noqa: S101 - `resolve` has seen to it
        taken = answers.take(tool, missing, heard, question.said, question.args)
        if isinstance(taken, answers.Unfit):
            return ask_within_bounds(question, missing)
        filled = taken.settle(missing, self._filled(tool, taken.whole, remembered, known=taken.known))
        if not filled.missing:
            return Call(tool, filled.args, question.said)
        still = filled.missing[0]
        learned = not question.exact and filled.known != dict(question.args or {})
        if question.times >= (1 if question.exact else OFTEN_ENOUGH) and still is missing and not learned:
            return Say(
                f"I still do not understand the {missing.spoken}, so I leave it. You may say it all again."
            )
        if cannot_ask(still):
            return Say(beyond_me(tool, still))
        times = question.times + 1 if still is missing and not learned else 1
        return Question(ask_for(still, taken.whole), taken.whole.text, (tool,), still, filled.known, times)

    def _filled(
        self,
        tool: Tool,
        heard: Heard,
        remembered: Remembered,
        known: Mapping[str, Any] | None = None,
    ) -> Filled:
        alike = self._chooser.examples_alike(tool, heard)
        return Filler(tool, heard, remembered, zone=self._zone, alike=alike).fill(known)


_PLACES = ({"1", "first", "former", "a"}, {"2", "second", "latter", "b"})


def _leads_away(heard: Heard, best: Weighed, waiting: Weighed) -> bool:
    """Whether something else is wanted than what waits: a clear request, or a question of the user's."""
    # A mark alone makes no question: "Friday at four?" is an answer.
    asks = is_question(heard.request.rstrip(" ?"))
    return best.score >= (_ASKED if asks else CERTAIN) and best.score - waiting.score > _APART


def _is_a_wish(heard: Heard, weighed: Sequence[Weighed]) -> bool:
    """Whether the words want something by themselves, be it that no tool does it."""
    asks = is_order(heard.request) or seeks(heard.request)
    return (asks and weighed[0].score >= CLEAR) or any(each.beyond for each in weighed)


def _fetches(tool: Tool) -> bool:
    return len(tool.required) == 1 and tool.required[0].kind is Kind.ID


def _warning(tool: Tool) -> str:
    return f"If this goes on, I will use “{spoken_name(tool.id)}”. Nothing has been done yet."
