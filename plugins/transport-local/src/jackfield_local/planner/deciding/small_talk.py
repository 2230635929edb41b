"""What no tool is wanted for: whether it is that, and what is answered."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield.contract.context import Mode

from jackfield_local.language.words import words
from jackfield_local.planner.choosing.chooser import CERTAIN, CLEAR, Weighed, Weighing
from jackfield_local.planner.choosing.small_talk import Talk
from jackfield_local.planner.deciding.moves import Say
from jackfield_local.planner.deciding.talking import no_tool_for_it, not_understood, only_english, reply
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.foreign import other_language
from jackfield_local.planner.language.parting import is_parting
from jackfield_local.planner.language.requests import is_about_the_agent, is_made_up, is_remark
from jackfield_local.planner.reading.tool import Tool
from jackfield_local.planner.remembered import Remembered

TALK = 0.62
"""A few words that are so much like small talk are small talk."""

ALL_BUT_SAID = 0.5
"""An example that is so much alike was said, but for some words."""

_ALMOST_TALK = 0.5
_HARDLY_TALK = 0.35
_FEW = 6

_OF_ITSELF = frozenset((Talk.IDENTITY, Talk.WELLBEING, Talk.LANGUAGE, Talk.CHAT, Talk.DOUBT, Talk.ABILITY))
_EXACT = frozenset((Talk.ABILITY, Talk.IDENTITY, Talk.LANGUAGE, Talk.DOUBT, Talk.DROPPING))
"""What is answered to these is a fact, and put in no other words."""


class Talking:
    """Answers without a tool."""

    def __init__(self, tools: Sequence[Tool], chooser: Weighing, mode: Mode) -> None:
        self._tools = tools
        self._chooser = chooser
        self._mode = mode

    def answer(self, heard: Heard, remembered: Remembered, best: Weighed) -> Say | None:
        """What is answered to small talk, to questions about the agent and to other languages.

        Nothing where a tool may be wanted; `best` is the likeliest one.
        """
        if (apology := other_language(heard.request)) is not None:
            return Say(only_english(apology), talk=True, free=True)
        talk, like = self._chooser.small_talk(heard)
        if self._is_talk(heard, like, best):
            talk = Talk.FAREWELL if is_parting(heard.request) else talk
            return self.say(talk if like >= _ALMOST_TALK else Talk.AGREEMENT, remembered)
        if is_made_up(heard.request) and best.score < CERTAIN:
            return self.say(Talk.CHAT, remembered)
        if is_about_the_agent(heard.request) and heard.when is None and best.score < CERTAIN:
            known = like >= _HARDLY_TALK and talk in _OF_ITSELF
            return self.say(talk if known else Talk.IDENTITY, remembered)
        return None

    def say(self, talk: Talk, remembered: Remembered) -> Say:
        """The answer to one kind of small talk."""
        said = reply(talk, self._tools, self._mode, remembered)
        return Say(said, talk=True, free=talk not in _EXACT, lists=talk is Talk.ABILITY)

    def lost(self, remembered: Remembered) -> Say:
        """That nothing was understood."""
        said = not_understood(self._tools, self._mode, remembered)
        return Say(said, free=True, lost=True, lists=True)

    def unable(self, remembered: Remembered, wish: str = "do that") -> Say:
        """That no tool does what was asked for."""
        return Say(no_tool_for_it(self._tools, self._mode, remembered, wish), lists=True)

    def _is_talk(self, heard: Heard, like: float, best: Weighed) -> bool:
        if best.tool.parts and best.score > CLEAR:
            return False  # Where there is a tool that hangs up, a farewell is a wish for it.
        material = heard.payload or heard.ids or heard.emails or heard.quotes
        short = len(words(heard.text)) <= _FEW
        said = alike(self._chooser, best.tool, heard) >= ALL_BUT_SAID
        if short and is_remark(heard.text) and not material and not said:
            return True
        return not material and ((like >= TALK and short) or (like >= _ALMOST_TALK and like > best.score))


def alike(chooser: Weighing, tool: Tool, heard: Heard) -> float:
    """How much the nearest example of a tool is like what was said."""
    return max(chooser.examples_alike(tool, heard), default=0.0)
