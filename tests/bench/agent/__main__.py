"""Score the local agent on one part of the requests; the last line has the figures as JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from jackfield import Mode
from jackfield_local.agent.agent import LocalAgent

from bench.agent import answers, completion, conversations, dataset, requests
from bench.agent.dataset import Chosen
from bench.agent.scores import Row
from bench.agent.sessions import Moment, decider
from bench.agent.site import Site, site

MODES: tuple[Mode, ...] = ("text", "voice")


class Scoring:
    """The inputs of the sets: an agent, its clock, the real tools, and the selected rows."""

    def __init__(self, agent: LocalAgent, clock: Moment, chosen: Chosen, stack: AsyncExitStack) -> None:
        self.agent = agent
        self.clock = clock
        self.chosen = chosen
        self.shown = chosen.development
        self._stack = stack
        self._site: Site | None = None

    async def site(self) -> Site:
        """The runtime with the real tools, started when a set first needs it."""
        if self._site is None:
            self._site = await self._stack.enter_async_context(site())
        return self._site


async def earlier(scoring: Scoring) -> Mapping[str, Row]:
    scoring.clock.now = dataset.earlier_moment()
    rows = dataset.earlier(scoring.chosen)
    found = await requests.third_party(scoring.agent, rows, "text", shown=scoring.shown)
    return {"third-party tools, earlier set": found}


async def third_party(scoring: Scoring) -> Mapping[str, Row]:
    rows = dataset.third_party(scoring.chosen)
    found = await requests.third_party(scoring.agent, rows, "text", shown=scoring.shown)
    return {"third-party tools, unseen": found}


async def third_party_voice(scoring: Scoring) -> Mapping[str, Row]:
    rows = dataset.third_party(scoring.chosen)
    found = await requests.third_party(scoring.agent, rows, "voice", shown=scoring.shown)
    return {"third-party tools, unseen, in voice": found}


async def public(scoring: Scoring) -> Mapping[str, Row]:
    rows = dataset.public(scoring.chosen)
    if not rows:
        return {}
    place = await scoring.site()
    openings = {mode: await place.opening(scoring.agent, mode) for mode in MODES}
    return {
        "public requests, own tools": await requests.public(
            scoring.agent, rows, openings, shown=scoring.shown
        )
    }


async def console(scoring: Scoring) -> Mapping[str, Row]:
    rows = dataset.unseen("console", scoring.chosen)
    found = await answers.answered(await scoring.site(), scoring.agent, rows, "text", shown=scoring.shown)
    return {"console, tools run": found}


async def spoken(scoring: Scoring) -> Mapping[str, Row]:
    rows = dataset.unseen("spoken", scoring.chosen)
    found = await answers.answered(await scoring.site(), scoring.agent, rows, "voice", shown=scoring.shown)
    return {"spoken, tools run": found}


async def sample(scoring: Scoring) -> Mapping[str, Row]:
    found = {}
    for mode, rows in answers.SAMPLE.items():
        found[f"the sample's questions, {mode}"] = await answers.answered(
            await scoring.site(), scoring.agent, rows, mode, shown=scoring.shown
        )
    return found


async def completing(scoring: Scoring) -> Mapping[str, Row]:
    rows = dataset.third_party(scoring.chosen)
    return {
        f"by {way}": await completion.completed(scoring.agent, rows, forms=forms, shown=scoring.shown)
        for way, forms in (("a form", True), ("questions", False))
    }


async def conversing(scoring: Scoring) -> Mapping[str, Row]:
    rows = dataset.conversations(scoring.chosen)
    place = await scoring.site()
    return {
        name: await conversations.held(place, scoring.agent, rows, own=own, shown=scoring.shown)
        for name, own in (("own tools", True), ("third-party tools", False))
    }


SETS: dict[str, Callable[[Scoring], Awaitable[Mapping[str, Row]]]] = {
    "third_party": third_party,
    "third_party_voice": third_party_voice,
    "earlier": earlier,
    "public": public,
    "console": console,
    "spoken": spoken,
    "sample": sample,
    "completion": completing,
    "conversations": conversing,
}


async def score(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of each set."""
    clock = Moment(dataset.unseen_moment())
    agent = decider(options.decider, clock, os.environ.get("JACKFIELD_TEST_GGUF", ""))
    chosen = Chosen(options.part == "development", options.most, options.first)
    found: dict[str, Any] = {}
    async with AsyncExitStack() as stack:
        stack.push_async_callback(agent.close)
        scoring = Scoring(agent, clock, chosen, stack)
        for name in options.sets:
            clock.now = dataset.unseen_moment()
            if scoring.shown:
                print(f"\n## {name}: {options.decider}", file=sys.stderr, flush=True)
            rows = dict(await SETS[name](scoring))
            if scoring.shown:
                print(json.dumps(rows), file=sys.stderr, flush=True)
            found |= rows
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.agent", description=__doc__)
    parser.add_argument(
        "sets", nargs="*", metavar="SET", help=f"which requests: {', '.join(SETS)} (default: all)"
    )
    parser.add_argument("--decider", choices=("router", "model"), default="router")
    parser.add_argument(
        "--part",
        choices=("development", "held-out"),
        default="development",
        help="`development` lists every failure, `held-out` shows only counts (default: development)",
    )
    parser.add_argument(
        "--most", type=int, default=0, help="use at most this many rows of each set (default: all)"
    )
    parser.add_argument("--first", type=int, default=0, help="skip this many rows first")
    options = parser.parse_args()
    options.sets = options.sets or list(SETS)
    if unknown := set(options.sets) - set(SETS):
        parser.error(f"no such set: {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    print(json.dumps(asyncio.run(score(options))))


if __name__ == "__main__":
    main()
