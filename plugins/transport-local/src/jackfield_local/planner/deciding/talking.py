"""Answers to small talk, in one calm sentence."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield.contract.context import Mode

from jackfield_local.language.words import spoken_name
from jackfield_local.planner.choosing.small_talk import Talk
from jackfield_local.planner.deciding.asking import capabilities, in_a_clause
from jackfield_local.planner.reading.tool import Tool
from jackfield_local.planner.remembered import Remembered

INTRODUCTION: dict[Mode, str] = {
    "text": (
        "I am a simple planner, not a language model: "
        "I match what you write to the tools that are installed here."
    ),
    "voice": "I am a simple planner, not a language model.",
}

_REPLIES = {
    Talk.GREETING: "Hello. What can I do for you?",
    Talk.WELLBEING: "I am only a program, and I am running well. What can I do for you?",
    Talk.THANKS: "You are welcome.",
    Talk.PRAISE: "Thank you.",
    Talk.IDENTITY: (
        "I am a program that picks tools and fills in what they need: no person, and no language model. "
        "I have no name of my own."
    ),
    Talk.LANGUAGE: "I understand English only.",
    Talk.AGREEMENT: "All right.",
    Talk.HESITATION: "Take your time.",
    Talk.DROPPING: "All right, I leave it.",
    Talk.APOLOGY: "No harm done.",
    Talk.FAREWELL: "Goodbye.",
    Talk.AMUSEMENT: "Glad to hear it.",
    Talk.CHAT: (
        "I can neither chat nor make things up, as all I do is use tools. "
        "Ask me what I can do, and I list it."
    ),
}
SEARCH_THE_WEB = "search the web"
_LIST = "Ask me what I can do, and I list it."
_OTHER_WORDS = "If you meant something else, put it in other words."


def reply(talk: Talk, tools: Sequence[Tool], mode: Mode, remembered: Remembered) -> str:
    """What is answered to small talk."""
    if talk is Talk.ABILITY:
        return capabilities(tools, mode)
    return _account(remembered) if talk is Talk.DOUBT else _REPLIES[talk]


def not_understood(tools: Sequence[Tool], mode: Mode, remembered: Remembered) -> str:
    """What is said when nothing fits."""
    if remembered.lost:
        return f"I did not understand what you want this time either. {_LIST}"
    if mode == "voice":
        return f"I did not understand what you want. {_able(tools, mode, remembered)}"
    again = "I do not know which tool you mean. Could you put it in other words?"
    return f"{again} {_able(tools, mode, remembered)}"


def no_tool_for_it(tools: Sequence[Tool], mode: Mode, remembered: Remembered, wish: str = "do that") -> str:
    """What is said to a wish that no tool can fulfil."""
    return f"I cannot {wish}, as no tool here does it. {_able(tools, mode, remembered)}"


def not_from_the_web(instead: Tool) -> str:
    """What is said before another tool looks for what should be looked for on the web."""
    return (
        f"I cannot {SEARCH_THE_WEB}, as no tool here does it. "
        f"What follows is from one that {in_a_clause(instead)}, and from nowhere else."
    )


def _able(tools: Sequence[Tool], mode: Mode, remembered: Remembered) -> str:
    """What can be done is listed once, and not every time."""
    return _LIST if remembered.listed else capabilities(tools, mode, brief=True)


def only_english(apology: str) -> str:
    """What is said to another language."""
    return f"{apology} {_REPLIES[Talk.LANGUAGE]} Please put it in English.".strip()


def _account(remembered: Remembered) -> str:
    """What was done last and why, to somebody who doubts it."""
    if remembered.lost:
        return f"I did not understand what you said before. {_LIST}"
    if not remembered.last_tool:
        return "I have done nothing yet. Tell me what you want, or ask me what I can do."
    tool = spoken_name(remembered.last_tool)
    taken = f"I took “{remembered.last_question}” as a wish for “{tool}”"
    return f"{taken}, and all I know is what it told me. {_OTHER_WORDS}"
