"""Users and anonymous sessions are kept apart, for any user name."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import jackfield_policies
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jackfield import ToolResponse, ok
from jackfield.session.session import Session
from jackfield.store import MemoryStore
from jackfield_policies.access import Bans, Subject, parse_subject, subject_key, subject_prefixes
from jackfield_testkit.runtime import TestRuntime, make_tool

names = st.one_of(
    st.text(min_size=1),
    st.lists(st.sampled_from(["session:", "user", "-user", "/", ":", "ban", "a"]), min_size=1).map("".join),
)
subjects = st.one_of(names.map(lambda name: Subject(name, None)), names.map(lambda id_: Subject(None, id_)))


def key_of(who: Subject) -> str:
    return subject_key("ban", who.user, who.session or "")


@given(subjects, subjects)
@example(Subject("session:abc", None), Subject(None, "abc"))
@example(Subject("session:abc", None), Subject("session:session:abc", None))
def test_subjects_have_unique_store_keys(one: Subject, other: Subject) -> None:
    assert (key_of(one) == key_of(other)) is (one == other)
    assert parse_subject(key_of(one)) == one
    assert key_of(one).startswith(subject_prefixes("ban"))


def test_a_ban_needs_a_user_or_a_session() -> None:
    with pytest.raises(ValueError, match="neither a user nor a session"):
        asyncio.run(Bans(MemoryStore()).add(None, 60))


async def execute(args: object, ctx: object) -> ToolResponse:
    return ok({"done": True})


async def ban(args: object, ctx: Any) -> ToolResponse:
    return ok({"until": await ctx.bans.add(ctx.session.user, 60, ctx.session.id)})


def make_runtime(store: MemoryStore) -> TestRuntime:
    return TestRuntime(
        make_tool("tool", execute),
        make_tool("limited", execute, rateLimit={"calls": 1, "windowMs": 60_000}),
        make_tool("ban", ban, requires=["bans"]),
        policies=jackfield_policies.jackfield_policies(),
        capabilities=jackfield_policies.jackfield_capabilities(),
        store=store,
    )


async def passes(work: TestRuntime, session: Session, tool: str = "tool") -> bool:
    """Return whether a new call passes."""
    return (await work.call(session, tool, call_id=os.urandom(8).hex())).response.ok


def test_a_user_named_like_a_session_does_not_share_its_bans_and_limits() -> None:
    store = MemoryStore()
    work, bans = make_runtime(store), Bans(store)
    visitor = work.session(session_id="abc", user=None)
    user = work.session(session_id="def", user="session:abc")

    async def main() -> None:
        await bans.add("session:abc", 60)
        assert not await passes(work, user)
        assert await passes(work, visitor)
        assert await bans.remaining("session:abc") > 0
        assert await bans.remaining(None, "abc") == 0
        assert await bans.remove("session:abc")
        await bans.add(None, 60, "abc")
        assert not await passes(work, visitor)
        assert await passes(work, user)
        assert await bans.remove(None, "abc")
        assert await passes(work, visitor, "limited")
        assert await passes(work, user, "limited")
        assert not await passes(work, user, "limited")

    asyncio.run(main())


@pytest.mark.parametrize("user", [None, "ada", "session:abc"])
def test_a_tool_bans_only_its_own_user(user: str | None) -> None:
    work = make_runtime(MemoryStore())
    sessions = [work.session(session_id="abc", user=each) for each in (None, "ada", "session:abc")]

    async def main() -> list[str | None]:
        assert await passes(work, work.session(session_id="abc", user=user), "ban")
        return [each.user for each in sessions if not await passes(work, each)]

    assert asyncio.run(main()) == [user]


def test_existing_bans_of_a_store_are_kept_and_listed() -> None:
    store = MemoryStore()
    work, bans = make_runtime(store), Bans(store)

    async def main() -> None:
        until = store.now() + 60
        for kept in ("ban/ada", "ban/user:grace", "ban/session:abc"):
            await store.put(kept, orjson.dumps(until), ttl=60)
        for banned in ({"user": "ada"}, {"user": "user:grace"}, {"user": None, "session_id": "abc"}):
            assert not await passes(work, work.session(**banned))
        ada, grace, nobody = Subject("ada", None), Subject("user:grace", None), Subject(None, "abc")
        assert await bans.active() == dict.fromkeys((ada, grace, nobody), until)

    asyncio.run(main())
