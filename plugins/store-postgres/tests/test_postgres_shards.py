"""A store in several databases: which one has a key, which lists are refused, and the loss of a database."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.session.fenced_record import key_for
from jackfield.settings import SettingsError, parse_settings
from jackfield.store import ClaimState, StoreUnavailableError
from jackfield_store_postgres import ShardedStore, jackfield_stores, schema
from jackfield_store_postgres.settings import PostgresSettings
from jackfield_store_postgres.sharded_store import shard_of, shard_of_prefix
from jackfield_testkit.postgres import PostgresServer, free_port

(OFFER,) = jackfield_stores()

_numbers = itertools.count(1)

ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/@"), min_size=1, max_size=40)
kinds = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), max_size=20)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
counts = st.integers(1, 64)


@pytest.fixture
def new_urls(server: PostgresServer) -> Callable[[int], list[str]]:
    """Returns the URLs of new databases."""
    return lambda count: [server.create_database(f"shard{next(_numbers)}") for _ in range(count)]


def settings(*urls: str, **changes: Any) -> PostgresSettings:
    return PostgresSettings(**{"shards": urls, "patience": 1.0, **changes})


def created(*urls: str) -> str:
    assert OFFER.initialise
    return OFFER.initialise(settings(*urls))


def refusal(chosen: PostgresSettings, *keys: str) -> str:
    """Return why a host does not start; an operation on the databases of `keys` fails for the same reason."""

    async def use() -> None:
        store = OFFER.create(chosen)
        try:
            for key in keys:
                with pytest.raises(StoreUnavailableError):
                    await store.get(key)
        finally:
            await store.close()

    asyncio.run(use())
    return str(OFFER.missing(chosen))


def key_on(index: int, total: int, kind: str = "session") -> str:
    """Return a key whose shard has this index."""
    return next(key for number in itertools.count() if shard_of(key := f"{kind}/{number}", total) == index)


# --- which database has a key ----------------------------------------------------------------------------


@given(ids, kinds, kinds, texts, st.integers(0, 10**15), counts)
def test_everything_of_a_session_is_in_one_database(
    session: str, kind: str, other: str, rest: str, epoch: int, total: int
) -> None:
    index = shard_of(f"{kind}/{session}", total)
    assert 0 <= index < total
    assert shard_of(f"{other}/{session}/{rest}", total) == index
    assert shard_of(key_for(f"{other}/{session}", epoch), total) == index


@given(texts, texts, counts)
def test_a_prefix_leads_to_the_database_of_all_its_keys(prefix: str, rest: str, total: int) -> None:
    assert shard_of_prefix(prefix, total) in (None, shard_of(prefix + rest, total))


@given(ids, kinds, counts)
def test_the_records_of_one_session_are_listed_by_one_database(session: str, kind: str, total: int) -> None:
    for prefix in (f"{kind}/{session}/", f"{kind}/{session}@"):
        assert shard_of_prefix(prefix, total) == shard_of(f"events/{session}", total)
    assert shard_of_prefix(f"{kind}/{session}", total) is None


def test_the_database_of_a_key_never_changes() -> None:
    # Literal, because data that was written by another version has to be found.
    keys = ("session/5f0c7c1c6ad1b6b8", "events/5f0c7c1c6ad1b6b8", "rate/ann@example.com/bash", "k", "")
    assert [shard_of(key, 5) for key in keys] == [4, 4, 2, 0, 1]


@pytest.mark.parametrize("total", [2, 3, 7])
def test_sessions_are_spread_evenly(total: int) -> None:
    found = Counter(shard_of(f"session/{number}", total) for number in range(total * 1000))
    assert len(found) == total
    # Six standard deviations of a fair choice.
    assert all(abs(count - 1000) < 6 * 1000**0.5 for count in found.values())


# --- creating a store in several databases ---------------------------------------------------------------


def test_all_databases_are_created_and_shown_together(new_urls: Callable[[int], list[str]]) -> None:
    urls = new_urls(3)
    said = created(*urls)
    assert OFFER.missing(settings(*urls)) is None
    assert OFFER.describe
    facts = OFFER.describe(settings(*urls))
    assert said.endswith(f"with the id {facts['id']}")
    assert facts["shards"] == 3
    assert [facts[f"shard {number} place"].split("/")[-1].split()[0] for number in (1, 2, 3)] == [
        url.rpartition("/")[2] for url in urls
    ]

    async def use() -> None:
        store = OFFER.create(settings(*urls, id=facts["id"]))
        for index in range(3):
            await store.put(key_on(index, 3), b"v")
        await store.close()

    asyncio.run(use())
    facts = OFFER.describe(settings(*urls))
    assert facts["values"] == 3
    assert [facts[f"shard {number} values"] for number in (1, 2, 3)] == [1, 1, 1]
    with pytest.raises(
        StoreUnavailableError, match=r"nothing was created: .* is already a store, with the id"
    ):
        created(*urls)


def test_nothing_is_created_while_a_database_is_away(new_urls: Callable[[int], list[str]]) -> None:
    first, second = new_urls(2)
    away = f"postgresql://u:s3cret-word@127.0.0.1:{free_port()}/x"
    with pytest.raises(StoreUnavailableError, match="cannot be reached") as caught:
        created(first, away)
    assert "s3cret-word" not in str(caught.value)
    created(first, second)


def test_an_unfinished_creation_is_refused_and_can_be_finished(
    server: PostgresServer, new_urls: Callable[[int], list[str]]
) -> None:
    urls = new_urls(2)
    second = urls[1].rpartition("/")[2]
    # The second database passes all checks before the first one is created, and then fails.
    server.execute(
        "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'no space'; END$$; "
        "CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE TABLE') "
        "EXECUTE FUNCTION refuse()",
        database=second,
    )
    with pytest.raises(StoreUnavailableError, match=second):
        created(*urls)
    assert "not created completely; run `jackfield store create` again" in refusal(
        settings(*urls), key_on(0, 2), key_on(1, 2)
    )
    server.execute("DROP EVENT TRIGGER refuse", database=second)
    created(*urls)
    assert OFFER.missing(settings(*urls)) is None


def test_a_lost_database_is_not_replaced_by_an_empty_one(new_urls: Callable[[int], list[str]]) -> None:
    first, second, empty = new_urls(3)
    created(first, second)
    assert "does not exist" in refusal(settings(first, empty), key_on(1, 2))
    with pytest.raises(StoreUnavailableError, match=r"nothing was created: shard 2 of .* restore a backup"):
        created(first, empty)


def test_a_store_from_before_shards_is_migrated(
    server: PostgresServer, new_urls: Callable[[int], list[str]]
) -> None:
    (url,) = new_urls(1)
    created(url)
    server.execute(
        "SET search_path TO jackfield; DELETE FROM versions WHERE version = 2; "
        "ALTER TABLE identity DROP COLUMN shard, DROP COLUMN shards, DROP COLUMN complete",
        database=url.rpartition("/")[2],
    )
    assert OFFER.missing(settings(url)) is None

    async def use() -> None:
        store = OFFER.create(settings(url))
        await store.put("k", b"v")
        await store.close()

    asyncio.run(use())
    assert OFFER.describe
    facts = OFFER.describe(settings(url))
    assert (facts["schema"], facts["values"]) == (schema.VERSION, 1)


# --- lists of databases that are refused -----------------------------------------------------------------


def test_a_changed_list_of_databases_is_refused(new_urls: Callable[[int], list[str]]) -> None:
    first, second, third = new_urls(3)
    created(first, second)
    swapped = refusal(settings(second, first), key_on(0, 2), key_on(1, 2))
    assert (
        "is shard 2 of 2, but [stores.postgres] lists it as shard 1 of 2; list the shards in the order"
        in (swapped)
    )
    for fewer in (settings(first), PostgresSettings(url=first, patience=1.0)):
        assert "is shard 1 of 2, but [stores.postgres] names it as the only one; the number of shards" in (
            refusal(fewer, "k")
        )
    assert "lists it as shard 1 of 3; the number of shards of a store cannot be changed" in refusal(
        settings(first, second, third), key_on(0, 3)
    )
    with pytest.raises(StoreUnavailableError, match="cannot be changed"):
        created(first, second, third)


def test_a_store_in_one_database_cannot_be_spread(new_urls: Callable[[int], list[str]]) -> None:
    first, second = new_urls(2)
    created(first)
    assert "is the only database of its store, but [stores.postgres] lists it as shard 1 of 2" in refusal(
        settings(first, second), key_on(0, 2)
    )


def test_a_database_of_another_store_is_refused(new_urls: Callable[[int], list[str]]) -> None:
    first, second, third, fourth = new_urls(4)
    created(first, second)
    created(third, fourth)
    assert "it is not the same store" in str(OFFER.missing(settings(first, fourth)))

    async def use() -> None:
        # Also without the check at the start: whichever is opened second is refused.
        store = ShardedStore([first, fourth], patience=1.0)
        await store.get(key_on(0, 2))
        with pytest.raises(StoreUnavailableError, match="it is not the same store"):
            await store.get(key_on(1, 2))
        await store.close()

    asyncio.run(use())


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"url": "postgresql://a/s3cret", "shards": ["postgresql://b/s3cret"]}, "set either `url`"),
        (
            {"shards": ["postgresql://a/s3cret", "postgresql://a/s3cret"]},
            "shards 1 and 2 are the same database",
        ),
        ({"shards": ["mysql://a/s3cret"]}, "a URL that begins with postgresql://"),
        ({"shards": [f"postgresql://s3cret/{number}" for number in range(65)]}, "64"),
    ],
)
def test_a_nonsensical_list_is_refused_without_showing_an_address(table: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(PostgresSettings, table, "[stores.postgres]")
    assert reason in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_the_shards_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JACKFIELD_POSTGRES_URL", raising=False)
    first, second = "postgresql://a1,a2/s3cret", "postgresql://b/s3cret"
    monkeypatch.setenv("JACKFIELD_POSTGRES_SHARDS", f"{first}\n  {second}\n")
    assert PostgresSettings().addresses() == (first, second)
    assert PostgresSettings(url="postgresql://c/x").addresses() == ("postgresql://c/x",)
    for variable, value, reason in (
        ("JACKFIELD_POSTGRES_URL", first, "are both set; unset one of them"),
        ("JACKFIELD_POSTGRES_SHARDS", f"{first} {first}", "shards 1 and 2 are the same database"),
        ("JACKFIELD_POSTGRES_SHARDS", f"{first}, {second}", "separate the URLs by spaces"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(variable, value)
            with pytest.raises(StoreUnavailableError) as caught:
                OFFER.create(PostgresSettings())
        assert reason in str(caught.value)
        assert "s3cret" not in str(caught.value)


# --- an unreachable database -----------------------------------------------------------------------------


def test_the_sessions_of_other_databases_go_on_while_one_is_away(
    new_urls: Callable[[int], list[str]],
) -> None:
    (first,) = new_urls(1)
    mine, lost = key_on(0, 2), key_on(1, 2)

    async def use(killed: PostgresServer) -> None:
        store = await ShardedStore.open([first, killed.uri()], patience=0.5)
        for key in (mine, lost):
            await store.put(f"{key}/value", b"v")
            assert await store.append(key, b"1") == 1
            assert (await store.claim(key, b"f", ttl=600)).state is ClaimState.RUN
        await asyncio.to_thread(killed.kill)
        assert store.now() > 1e9
        assert await store.get(f"{mine}/value") == b"v"
        assert await store.keys(f"{mine}/") == [f"{mine}/value"]
        assert await store.append(mine, b"2") == 2
        assert await store.complete(mine, b"r")
        for work in (
            store.get(f"{lost}/value"),
            store.append(lost, b"2"),
            store.keys(f"{lost}/"),
            # An answer without the other database's part would look complete.
            store.keys(""),
            store.streams(""),
            store.in_doubt("session/"),
            store.prune(),
        ):
            with pytest.raises(StoreUnavailableError, match=str(killed.port)):
                await work
        await asyncio.to_thread(killed.start)
        assert await store.append(lost, b"2") == 2
        assert await store.complete(lost, b"r")
        assert await store.streams("") == sorted([mine, lost])
        await store.close()

    with PostgresServer.temporary() as server:
        asyncio.run(use(server))
