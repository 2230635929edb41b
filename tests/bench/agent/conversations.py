"""Whole conversations: each turn is scored separately, and the next one follows in any case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jackfield_local.agent.agent import LocalAgent

from bench.agent.criteria import equal, holds
from bench.agent.dataset import agent_test_module
from bench.agent.scores import Row, Score
from bench.agent.sessions import Call, Turn, session, third_party_opening
from bench.agent.site import Site


class _Done(NamedTuple):
    """A turn, and whether the user first had to confirm the tool."""

    turn: Turn
    agreed: bool


_MOST_CALLS = 4
"""Calls in one turn after which no more results are given."""


async def held(
    site: Site,
    agent: LocalAgent,
    conversations: Sequence[Mapping[str, Any]],
    *,
    own: bool,
    shown: bool,
) -> Row:
    """Score conversations with the repository's tools, which really run, or with third-party tools."""
    score = Score(shown=shown)
    for each in conversations:
        if (each["tools"] == "own") != own:
            continue
        turns = await (_own(site, agent, each["turns"]) if own else _third(agent, each["turns"]))
        writers = site.writers("text") if own else agent_test_module("agent_tools").WRITERS
        rights = [
            _judge(f"{each['name']}, turn {place}: {told['says']}", told, done, writers, score)
            for place, (told, done) in enumerate(zip(each["turns"], turns, strict=True), 1)
        ]
        score.count("conversations")
        score.count("whole", int(all(rights)))
    return score.row()


async def _own(site: Site, agent: LocalAgent, turns: Sequence[Mapping[str, Any]]) -> list[_Done]:
    done: list[_Done] = []
    async with site.talk(agent, "text", forms=False) as talk:
        for told in turns:
            turn = await talk.says(told["says"])
            agreed = _is_to_agree(told, turn)
            if agreed:
                turn = await talk.says("yes")
            if told.get("approve"):
                await talk.approves()
            done.append(_Done(turn, agreed))
    return done


async def _third(agent: LocalAgent, turns: Sequence[Mapping[str, Any]]) -> list[_Done]:
    done: list[_Done] = []
    async with session(agent, third_party_opening("text", forms=False)) as talk:
        for told in turns:
            turn = await talk.says(told["says"])
            agreed = _is_to_agree(told, turn)
            if agreed:
                turn = await talk.says("yes")
            last = turn
            while last.calls and len(turn.calls) < _MOST_CALLS:
                last = await talk.gets(told.get("result", {}))
                turn.said += last.said
                turn.calls += last.calls
                turn.question = turn.question or last.question
            done.append(_Done(turn, agreed))
    return done


def _is_to_agree(told: Mapping[str, Any], turn: Turn) -> bool:
    """Return whether the agent asks if it should do what this turn expects."""
    asked = turn.question
    return (
        asked is not None
        and asked.parameter is None
        and any(each.get("call") == asked.tool for each in _alternatives(told))
    )


def _judge(where: str, told: Mapping[str, Any], done: _Done, writers: frozenset[str], score: Score) -> bool:
    turn, agreed = done
    right = any(_is_met(each, turn, writers) for each in _alternatives(told))
    writes = sum(call.tool in writers and not _is_expected(call, told) for call in turn.calls)
    score.count("turns")
    score.share("right", right=right)
    score.count("after yes", int(right and agreed))
    score.count("wrong writes", writes)
    score.measure("seconds", turn.seconds)
    if not right:
        score.failed(where, told["expect"], f"{'WRONG WRITE ' * bool(writes)}{turn}")
    return right


def _alternatives(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    expected = told["expect"]
    return expected if isinstance(expected, list) else [expected]


def _is_met(expected: Mapping[str, Any], turn: Turn, writers: frozenset[str]) -> bool:
    if "call" in expected:
        return any(_is_as_expected(call, expected) for call in turn.calls)
    if "no_call" in expected:
        return not turn.calls
    if any(call.tool in writers for call in turn.calls):
        return False
    if "ask" in expected:
        return turn.question is not None and turn.question.parameter == expected["ask"]
    return holds(turn.said, expected["answer"])


def _is_expected(call: Call, told: Mapping[str, Any]) -> bool:
    return any("call" in each and _is_as_expected(call, each) for each in _alternatives(told))


def _is_as_expected(call: Call, expected: Mapping[str, Any]) -> bool:
    same = all(equal(call.args.get(name), value) for name, value in expected["args"].items())
    return call.tool == expected["call"] and same
