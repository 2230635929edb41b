"""The decision, without any effect: what was said and what is remembered in, a move out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jackfield.contract.context import Mode

from jackfield_local.planner.choosing.chooser import Weighed, Weighing
from jackfield_local.planner.choosing.small_talk import Talk
from jackfield_local.planner.deciding.asking import ask_for, ask_which, beyond_me, cannot_ask
from jackfield_local.planner.deciding.beyond import beyond_the_planner
from jackfield_local.planner.deciding.moves import Call, Move, Question, Say
from jackfield_local.planner.deciding.repeating import OFTEN_ENOUGH, again, ask_within_bounds
from jackfield_local.planner.deciding.talking import not_understood, reply
from jackfield_local.planner.filling import amounts, answers
from jackfield_local.planner.filling.filler import Filled, Filler
from jackfield_local.planner.filling.written import only_written
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.amounts import bare_amount
from jackfield_local.planner.language.parting import is_parting
from jackfield_local.planner.language.requests import is_order, is_question, is_remark, names_a_thing, seeks
from jackfield_local.planner.language.words import spoken_name, words
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Tool
from jackfield_local.planner.remembered import Remembered

CLEAR = 0.7
"""From here on a tool is taken without doubt."""

POSSIBLE = 0.66
"""Below this nothing is taken, unless any question may be put to a tool."""

CERTAIN = 1.1
"""A tool that is so clear is meant even while another question is open."""

TALK = 0.62
"""A few words that are so much like small talk are small talk."""

_ONLY_TALK = 0.8
"""Words that are so much like small talk are no answer to a question either."""

_APART = 0.2
_ALMOST_TALK = 0.5
_FEW = 6

_EXACT = frozenset((Talk.ABILITY, Talk.IDENTITY, Talk.DROPPING))
"""What is answered to these is a fact, and put in no other words."""

_CLOSE = 0.02
_NEARLY = 0.05
_ALL_BUT_SAID = 0.5
_SAID = 1.2
"""An example that is so much alike was said as it stands, but for a word."""
_ORDERED = 0.45
_ASKED = 0.5
_FOLLOWING = re.compile(
    r"^(?:and|what about|how about|or|then|no,? |rather|make it|make that|actually|instead)\b"
    r"|\binstead[.?!]*$",
    re.IGNORECASE,
)
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
        self._mode = mode
        self._zone = zone
        self._open = next((tool for tool in tools if tool.is_open), None)

    def led_by(self, lead: Callable[[Weighing], Weighing]) -> Judgement:
        """The same with somebody else's word on which tool is meant."""
        return Judgement(self.tools, lead(self._chooser), self._mode, self._zone)

    def decide(self, heard: Heard, remembered: Remembered) -> Move:
        """What to do with something new."""
        if not self.tools:
            return self._lost()
        weighed = self._weigh(heard, remembered)
        talk, like = self._chooser.small_talk(heard)
        if self._is_talk(heard, like, weighed[0]):
            return self._chat(talk if like >= _ALMOST_TALK else Talk.AGREEMENT)
        if remembered.beyond(heard.request):
            return Say(f"There are only {len(remembered.items)} of them. Which one do you mean?")
        if (followed := self._follow(heard, remembered, weighed)) is not None:
            return followed
        chosen = self._choose(heard, weighed)
        if isinstance(chosen, Tool):
            return self._use(chosen, heard, remembered)
        return chosen

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
            return self._chat(Talk.DROPPING)
        if like >= (TALK if is_question(heard.request) else _ONLY_TALK):
            return again(question) if talk is Talk.AGREEMENT else self.decide(heard, remembered)
        weighed = self._weigh(heard, remembered)
        waiting = [each for each in weighed if each.tool in question.tools]
        if _leads_away(heard, weighed[0], waiting[0]):
            return self.decide(heard, remembered)
        if question.missing is None:
            return self._settle(question, heard, remembered, waiting)
        return self._complete(question, heard, remembered)

    def _chat(self, talk: Talk) -> Say:
        return Say(reply(talk, self.tools, self._mode), talk=True, free=talk not in _EXACT)

    def _lost(self) -> Say:
        return Say(not_understood(self.tools, self._mode), free=True)

    def _weigh(self, heard: Heard, remembered: Remembered) -> list[Weighed]:
        """The tools, the likeliest first; one that ends the conversation counts only when plainly wished."""
        weighed = self._chooser.weigh(heard, remembered)
        doubtful = [each for each in weighed if each.tool.parts and not self._parting(each.tool, heard)]
        rest = [each for each in weighed if each not in doubtful]
        return [*rest, *(each._replace(score=0.0) for each in doubtful)]

    def _parting(self, tool: Tool, heard: Heard) -> bool:
        """Whether the words are a plain farewell, or an example of the tool's guide as it stands."""
        return is_parting(heard.request) or self._alike(tool, heard) >= _SAID

    def _is_talk(self, heard: Heard, like: float, best: Weighed) -> bool:
        if best.tool.parts and best.score > CLEAR:
            return False  # Where there is a tool that hangs up, a farewell is a wish for it.
        material = heard.payload or heard.ids or heard.emails or heard.quotes
        short = len(words(heard.text)) <= _FEW
        if short and is_remark(heard.text) and not material and not self._plain(best.tool, heard):
            return True
        return not material and ((like >= TALK and short) or (like >= _ALMOST_TALK and like > best.score))

    def _choose(self, heard: Heard, weighed: Sequence[Weighed]) -> Tool | Move:
        weighed = [each for each in weighed if not each.tool.composed or self._plain(each.tool, heard)]
        if not weighed:
            return self._lost()
        best = weighed[0]
        second = weighed[1] if len(weighed) > 1 else None
        asks = seeks(heard.request) or names_a_thing(heard.request)
        if best.score < CLEAR and self._open is not None and asks:
            return self._open
        if (
            self._open is not None
            and is_question(heard.request)
            and any(each.tool is self._open and best.score - each.score < _NEARLY for each in weighed)
        ):
            return self._open  # Of two that are as likely, looking something up harms nobody.
        if best.score < (POSSIBLE if not is_order(heard.request) else _ORDERED):
            return self._lost()
        if second is not None and best.score < CLEAR and best.score - second.score < _CLOSE:
            tools = (best.tool, second.tool)
            return Question(ask_which(tools, self._mode), heard.text, tools)
        return best.tool

    def _plain(self, tool: Tool, heard: Heard) -> bool:
        """Whether an example of a tool that thinks things up was all but said."""
        return self._alike(tool, heard) >= _ALL_BUT_SAID

    def _alike(self, tool: Tool, heard: Heard) -> float:
        return max(self._chooser.examples_alike(tool, heard), default=0.0)

    def _follow(self, heard: Heard, remembered: Remembered, weighed: Sequence[Weighed]) -> Move | None:
        """The last call with something changed: "tomorrow instead", "and in Tokyo?"."""
        last = next((each for each in weighed if each.tool.id == remembered.last_tool), None)
        if last is None or remembered.referred(heard.request) is not None:
            return None
        brief = len(words(heard.request)) <= 4
        short = brief and not seeks(heard.request)
        if not (_FOLLOWING.search(heard.request) or short):
            return None
        rival = weighed[0]
        if (
            rival.tool is not last.tool
            and not brief
            and rival.score > CERTAIN
            and rival.score - last.score > 0.2
        ):
            return None
        changed = self._filled(last.tool, heard, remembered).args
        typed = any(
            each.name in changed and changed[each.name] != remembered.last_args.get(each.name)
            for each in last.tool.parameters
            if each.kind not in (Kind.TEXT, Kind.RECORDS, Kind.OBJECT) or last.tool.is_open
            if each.kind is not Kind.WRITTEN or only_written(last.tool, heard)
        )
        if not typed or (short and not _FOLLOWING.search(heard.request) and last.tool.is_open):
            return None
        args = {**remembered.last_args, **_unlike_default(last.tool, changed, heard)}
        return Call(last.tool, args, heard.text)

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
        if question.times >= (1 if question.exact else OFTEN_ENOUGH) and still is missing:
            return Say(
                f"I still do not understand the {missing.spoken}, so I leave it. You may say it all again."
            )
        if cannot_ask(still):
            return Say(beyond_me(tool, still))
        times = question.times + 1 if still is missing else 1
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


def _fetches(tool: Tool) -> bool:
    return len(tool.required) == 1 and tool.required[0].kind is Kind.ID


def _unlike_default(tool: Tool, changed: Mapping[str, Any], heard: Heard) -> dict[str, Any]:
    """What was said anew; the user's own zone, which is filled in unsaid, changes nothing."""
    unsaid = {each.name for each in tool.parameters if each.kind is Kind.ZONE} if not heard.zones else set()
    return {name: value for name, value in changed.items() if name not in unsaid}


def _warning(tool: Tool) -> str:
    return f"If this goes on, I will use “{spoken_name(tool.id)}”. Nothing has been done yet."
