"""Requests that the agent's code has not seen, each in a session of its own: tool, call, arguments, time.

The first set are tools of third parties with requests beside the agent's own tests. The second set
are requests of public intent sets for the tools of this repository, in the file JACKFIELD_UTTERANCES.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import statistics
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

PART = os.environ.get("BENCH_PART", "held out")
FIRST, MOST = int(os.environ.get("BENCH_FIRST", "0")), int(os.environ.get("BENCH_MOST", "0"))


async def main() -> None:
    mind = thinking()
    try:
        found = {}
        if os.environ.get("BENCH_SETS", "third") != "own":
            found["third-party tools"] = await third_party(mind)
        if path := os.environ.get("JACKFIELD_UTTERANCES"):
            rows = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]  # noqa: ASYNC240
            found["public requests, own tools"] = await own_tools(mind, rows)
    finally:
        await mind.close()
    print(json.dumps(found))


def thinking() -> Any:
    """The mind under test."""
    options: Any = import_module("jackfield_local.options")
    now = import_module("local_requests").NOW
    if os.environ["BENCH_MIND"] == "planner":
        planner: Any = import_module("jackfield_local.planner.mind")
        return planner.Planner(options.Options(time_zone="Europe/Berlin"), clock=lambda: now)
    agent: Any = import_module("jackfield_local.agent.mind")
    chosen = options.Options(
        mind="llama", model_path=os.environ.get("JACKFIELD_TEST_GGUF", ""), time_zone="Europe/Berlin"
    )
    return agent.Agent(chosen, clock=lambda: now)


async def third_party(mind: Any) -> dict[str, float]:
    """Every tool is offered in every session; some requests lack a value and have to be asked back."""
    tools, requests = import_module("agent_tools").TOOLS, import_module("agent_requests")
    sessions: Any = import_module("local_session")
    cases = requests.DEVELOPMENT if PART == "development" else requests.HELD_OUT
    score = Score()
    for case in sampled(cases, lambda each: each.says):
        async with sessions.offered(tools, mind) as talk:
            said, call, args = await asked(talk, case.says, score)
        named = call or mentioned(talk)
        score.tool(right=named == case.tool)
        if case.asks:
            score.asked(right=call is None and named == case.tool)
            score.tell(case.says, None if call is None and named == case.tool else (call, args, said))
            continue
        made = call == case.tool
        equal = (
            made
            and set(args) == set(case.args)
            and all(requests.same(args[name], value) for name, value in case.args.items())
        )
        score.complete(made=made, right=equal)
        score.tell(case.says, None if equal else (call, args, said))
    return score.row()


async def own_tools(mind: Any, rows: list[dict[str, Any]]) -> dict[str, float]:
    """Only the tool is labelled; a harmless look-up is right where the label allows it."""
    sessions: Any = import_module("local_session")
    rows = [row for row in rows if row["tools"] != ["end_voice_session"]]
    rows = [row for row in rows if held_out(row["says"]) == (PART != "development")]
    score = Score()
    for row in sampled(rows, lambda each: str(each["says"])):
        among = sessions.TOOLS | {"web_search", "web_fetch"}
        async with sessions.session("text", mind, among=frozenset(among)) as talk:
            if hasattr(mind, "ready"):
                await mind.ready()
            said, call, args = await asked(talk, row["says"], score)
        named = call or mentioned(talk)
        allowed = [*row["tools"], *row.get("also", ())]
        right = named in allowed if named else not row["tools"]
        score.tool(right=right)
        score.tell(row["says"], None if right else (named, args, said))
    return score.row()


class Score:
    """Counts of one set."""

    def __init__(self) -> None:
        self.tools: list[bool] = []
        self.made: list[bool] = []
        self.exact: list[bool] = []
        self.questions: list[bool] = []
        self.seconds: list[float] = []

    def tool(self, *, right: bool) -> None:
        self.tools.append(right)

    def complete(self, *, made: bool, right: bool) -> None:
        self.made.append(made)
        self.exact.append(right)

    def asked(self, *, right: bool) -> None:
        self.questions.append(right)

    def tell(self, says: str, wrong: Any) -> None:
        """Show failures to whoever develops; those of the held-out part stay unread."""
        if wrong is not None and PART == "development":
            print(says, "=>", wrong, file=sys.stderr, flush=True)

    def row(self) -> dict[str, float]:
        shares = {"tool": self.tools, "made": self.made, "exact": self.exact, "asked": self.questions}
        found = {name: 100 * sum(each) / len(each) for name, each in shares.items() if each}
        return found | {"requests": len(self.tools), "seconds": statistics.median(self.seconds)}


async def asked(talk: Any, says: str, score: Score) -> tuple[str, str | None, dict[str, Any]]:
    began = time.perf_counter()
    said = await talk.says(says)
    score.seconds.append(time.perf_counter() - began)
    return (said, talk.calls[-1].tool_id, talk.args) if talk.calls else (said, None, {})


def mentioned(talk: Any) -> str | None:
    """The tool for which the agent asks back."""
    question = getattr(talk.connection._dialogue, "_question", None)
    if question is None:
        return None
    tool = getattr(question, "tool", None) or question.tools[0]
    return str(tool.id)


def held_out(says: str) -> bool:
    return hashlib.sha256(says.encode()).digest()[0] % 3 == 0


def sampled(rows: Any, key: Any) -> list[Any]:
    """All, or so many in the order of their hash, which is as good as chance."""
    ordered = sorted(rows, key=lambda each: hashlib.sha256(key(each).encode()).digest()[1:])
    return ordered[FIRST : FIRST + MOST] if MOST else ordered


if __name__ == "__main__":
    asyncio.run(main())
