"""Requests whose tools really run: the first tool, the final answer, and no unrequested writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield import Mode
from jackfield_local.agent.agent import LocalAgent

from bench.agent.criteria import holds
from bench.agent.scores import Row, Score
from bench.agent.sessions import Turn
from bench.agent.site import Site

_LOOKUP = {"tools": ["kb_search"], "also": ["kb_get", "linkedin_lookup"], "writes_nothing": True}
SAMPLE: dict[Mode, list[dict[str, Any]]] = {
    "text": [
        {"says": "How do I book the photo room?", **_LOOKUP, "answer": ["team calendar"]},
        {"says": "Who looks after the printers?", **_LOOKUP, "answer": ["Tobias"]},
        {
            "says": "What does the holiday policy say about the days between the years?",
            **_LOOKUP,
            "answer": ["given by the studio", "do not count"],
        },
        {"says": "Which project is late?", **_LOOKUP, "answer": ["late by two weeks"]},
        {"says": "What does a poster cost?", **_LOOKUP, "answer": ["900"]},
    ],
    "voice": [
        {"says": "how can i book the photo room", **_LOOKUP, "answer": ["team calendar"]},
        {"says": "who takes care of the printers here", **_LOOKUP, "answer": ["Tobias"]},
        {
            "says": "what does the holiday policy say about the days between the years",
            **_LOOKUP,
            "answer": ["given by the studio", "do not count"],
        },
        {"says": "is any project running late", **_LOOKUP, "answer": ["late by two weeks"]},
        {"says": "how much is a poster", **_LOOKUP, "answer": ["900", "nine hundred"]},
    ],
}
"""The questions that the README of the sample suggests, in a user's words."""


async def answered(
    site: Site, agent: LocalAgent, rows: Sequence[Mapping[str, Any]], mode: Mode, *, shown: bool
) -> Row:
    """Score rows of `console.jsonl` and `spoken.jsonl`, each in its own session; nothing is approved."""
    score, writers = Score(shown=shown), site.writers(mode)
    for row in rows:
        async with site.talk(agent, mode, forms=mode == "text") as talk:
            turn = await talk.says(row["says"])
        right = _right_tool(row, turn)
        told = "answer" not in row or holds(turn.user_text, row["answer"])
        writes = sum(each.tool in writers and _is_wrong_write(row, each.tool) for each in turn.calls)
        score.count("requests")
        score.measure("seconds", turn.seconds)
        score.share("tool", right=right)
        if "answer" in row:
            score.share("answer", right=told)
        score.count("wrong writes", writes)
        if not (right and told):
            expected = " or ".join(row["tools"]) or f"no call, at most {row['also']}"
            fact = f", saying one of {row['answer']}" if "answer" in row else ""
            score.failed(row["says"], f"{expected}{fact}", f"{'WRONG WRITE ' * bool(writes)}{turn}")
    return score.row()


def _right_tool(row: Mapping[str, Any], turn: Turn) -> bool:
    """Return whether all calls are right or harmless, and a right tool is called or asked about.

    Where no call is right, a question or a form may be: the request may only lack a value.
    """
    if any(each.tool not in (*row["tools"], *row["also"]) for each in turn.calls):
        return False
    return not row["tools"] or any(
        tool in row["tools"] for tool in (turn.tool, *(c.tool for c in turn.calls))
    )


def _is_wrong_write(row: Mapping[str, Any], tool: str) -> bool:
    return bool(row["writes_nothing"]) or tool not in row["tools"]
