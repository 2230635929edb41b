"""Who wants the web searched gets that, or is told that no tool does it before another search is made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from jackfield_local.planner.language.web import on_the_web
from local_session import TOOLS, Session, session

_WISHES = (
    ("search the web for poster printing prices", "poster printing prices"),
    ("Please google the opening hours of the harbour museum", "the opening hours of the harbour museum"),
    ("can you look up online how much a risograph costs?", "a risograph costs"),
    ("Find me something on the internet about letterpress", "letterpress"),
    ("do a quick web search for paper mills", "paper mills"),
    ("have a look on Google for paper mills", "paper mills"),
    ("what does the internet say about linocut?", "linocut"),
)
_CANNOT = "I cannot search the web, as no tool here does it."


def _talk(steps: Callable[[Session], Awaitable[None]], among: frozenset[str] = TOOLS) -> None:
    async def run() -> None:
        async with session(among=among) as talk, asyncio.timeout(60):
            await steps(talk)

    asyncio.run(run())


@pytest.mark.parametrize(("wish", "sought"), _WISHES)
def test_without_a_tool_for_it_that_is_said_and_what_is_known_comes_only_as_that(
    wish: str, sought: str
) -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says(wish)
        assert f"{_CANNOT} What follows is from one that searches the knowledge base" in said
        assert [call.tool_id for call in talk.calls] == ["kb_search"]
        assert talk.args["query"] == sought

    _talk(steps)


@pytest.mark.parametrize(("wish", "sought"), _WISHES)
def test_a_tool_that_searches_the_web_is_taken(wish: str, sought: str) -> None:
    async def steps(talk: Session) -> None:
        assert _CANNOT not in await talk.says(wish)
        assert [call.tool_id for call in talk.calls] == ["web_search"]
        assert talk.args["query"] == sought

    _talk(steps, TOOLS | {"web_search", "web_fetch"})


@pytest.mark.parametrize("wish", ["search the web", "no, look it up online", "what's on the internet?"])
def test_with_nothing_to_look_for_it_is_only_said(wish: str) -> None:
    async def steps(talk: Session) -> None:
        assert _CANNOT in await talk.says(wish)
        assert talk.calls == []

    _talk(steps)


def test_without_any_search_it_is_only_said_too() -> None:
    async def steps(talk: Session) -> None:
        assert _CANNOT in await talk.says("search the web for poster printing prices")
        assert talk.calls == []

    _talk(steps, frozenset(("format_datetime", "calendar_create_event")))


@pytest.mark.parametrize(
    "said",
    [
        "who does our web design?",
        "where is the web style guide?",
        "how do I get on the internet in the studio?",
        "find the online shop project",
        "show me the google docs link",
        "google's address",
        "what does https://example.org say on the web?",
        "search for the website project",
    ],
)
def test_what_only_speaks_of_the_web_is_no_wish_for_it(said: str) -> None:
    assert on_the_web(said) is None
