"""The answer to "what can you do?"."""

from __future__ import annotations

import asyncio

from agent_script import Scripted, agent_session
from agent_tools import TOOLS, Tool
from local_session import Session, session, talk_over

BOOKING = "A table for two on 4 March at half past seven, name of Keller please."
PARCEL = "Where is my parcel AB123456789?"
MERGE: Tool = (
    "Merges what other tools found.",
    {
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"type": "object"}, "description": "Results."}},
        "required": ["items"],
    },
    '# merge\n\nMerges.\n\n## Examples\n\nMerge these results.\n\n```json\n{"items": [{"id": "a"}]}\n```\n',
)
COUNT: Tool = ("Count the lamps.", {"type": "object", "properties": {}}, "# count_lamps\n\nCounts.\n")


def test_help_gives_requests_that_work_grouped_by_what_happens_then() -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says("what can you do?")
        asks, does = said.split("**Have me do something that needs your approval**")
        assert "**Ask me something**" in asks
        assert f"- {PARCEL}" in asks
        assert f"- {BOOKING}" in does
        # Neither what tools are called nor how they describe themselves.
        assert not any(tool in said or about in said for tool, (about, _, _) in TOOLS.items())
        await talk.says(PARCEL)
        assert [(call.tool_id, talk.args) for call in talk.calls] == [
            ("track_parcel", {"tracking_id": "AB123456789"})
        ]

    booking = frozenset(["book_table"])
    tools = {name: TOOLS[name] for name in ("book_table", "track_parcel")}
    talk_over(tools, steps, writers=booking, confirmed=booking)


def test_help_leaves_out_tools_that_users_cannot_ask_for() -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says("what can you do?")
        assert [line for line in said.splitlines() if line.startswith("- ")] == [
            f"- {PARCEL}",
            "- Count the lamps.",
        ]

    talk_over({"count_lamps": COUNT, "merge": MERGE, "track_parcel": TOOLS["track_parcel"]}, steps)


def test_spoken_help_is_short() -> None:
    async def run() -> None:
        async with session("voice") as talk:
            said = await talk.says("what can you do?")
        assert said.startswith("You can say, for example: ")
        assert "What time is it in Tokyo right now?" in said
        assert len(said.split()) < 40

    asyncio.run(run())


def test_help_that_the_model_decides_on_is_the_same() -> None:
    async def run() -> None:
        async with agent_session({"track_parcel": TOOLS["track_parcel"]}, Scripted({"help": True})) as talk:
            assert f"- {PARCEL}" in await talk.says("so tell me what you are good for")

    asyncio.run(run())
