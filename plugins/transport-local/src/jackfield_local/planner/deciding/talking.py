"""Answers to small talk, in one calm sentence."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield.contract.context import Mode

from jackfield_local.planner.choosing.small_talk import Talk
from jackfield_local.planner.deciding.asking import capabilities
from jackfield_local.planner.reading.tool import Tool

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
    Talk.AGREEMENT: "All right.",
    Talk.DROPPING: "All right, I leave it.",
    Talk.APOLOGY: "No harm done.",
    Talk.FAREWELL: "Goodbye.",
    Talk.AMUSEMENT: "Glad to hear it.",
    Talk.CHAT: "I am no good at chatting, as I can only use tools. Ask me what I can do.",
}


def reply(talk: Talk, tools: Sequence[Tool], mode: Mode) -> str:
    """What is answered to small talk."""
    if talk is Talk.ABILITY:
        return capabilities(tools, mode)
    if talk is Talk.IDENTITY:
        return "I am a program that picks tools and fills in what they need. I have no name of my own."
    return _REPLIES[talk]


def not_understood(tools: Sequence[Tool], mode: Mode) -> str:
    """What is said when nothing fits."""
    if mode == "voice":
        return f"I did not understand what you want. {capabilities(tools, mode)}"
    return f"I do not know which tool you mean. Could you put it in other words? {capabilities(tools, mode)}"
