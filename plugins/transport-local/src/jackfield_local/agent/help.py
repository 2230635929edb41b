"""The answer to "what can you do?": requests that lead to a tool, grouped by their effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jackfield_language.questions import asks_for_facts

from jackfield_local.agent.grounding import ground
from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.router import Router
from jackfield_local.agent.tools import Tool

_MOST, _MOST_SPOKEN = 5, 3
"""Maximum requests in a group, and in a spoken answer; nobody reads a longer list."""

NOTHING = "I do not have any tools yet."


def help_text(
    tools: Sequence[Tool], router: Router, message: Callable[[str], UserMessage], *, spoken: bool
) -> str:
    """Return one request for each tool that users ask for: the first example of its guide."""
    shown = [(tool, said) for tool in tools if (said := _request(tool, router, message))]
    # Questions first: they show best what there is to find out.
    shown.sort(key=lambda each: not asks_for_facts(each[1]))
    if not shown:
        return NOTHING
    if spoken:
        return " ".join(["You can say, for example:", *(said for _, said in shown[:_MOST_SPOKEN])])
    groups = {
        "Ask me something": [said for tool, said in shown if not tool.writes],
        "Have me do something": [said for tool, said in shown if tool.writes and not tool.confirmed],
        "Have me do something that needs your approval": [said for tool, said in shown if tool.confirmed],
    }
    parts = [
        "\n".join([f"**{title}**", "", *(f"- {each}" for each in group[:_MOST])])
        for title, group in groups.items()
        if group
    ]
    return "\n\n".join(
        ["Say it in your own words. For example:", *parts, "I will ask if I need to know more."]
    )


def _request(tool: Tool, router: Router, message: Callable[[str], UserMessage]) -> str:
    """Return a request that this agent carries out; empty for a tool that it only uses on its own."""
    if not tool.examples:
        return f"{tool.purpose}."
    said = message(tool.examples[0].says)
    works = ground(tool, None, said).missing is None and router.decide(said).tool is tool
    return said.text if works else ""
