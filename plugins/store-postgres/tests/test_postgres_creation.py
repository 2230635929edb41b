"""Creating a store: once, explicitly, and never to replace a lost store; and what a server must be like."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import SettingsError, parse_settings
from jackfield.store import StoreUnavailableError
from jackfield_store_postgres import PostgresStore, jackfield_stores, schema, server_check
from jackfield_store_postgres.settings import PostgresSettings
from jackfield_testkit.postgres import PostgresServer, free_port
from postgres_stores import split

(OFFER,) = jackfield_stores()


def settings(place: str, **changes: Any) -> PostgresSettings:
    url, name = split(place)
    return PostgresSettings(**{"url": url, "schema": name, "patience": 1.0, **changes})


def created(place: str, **changes: Any) -> str:
    assert OFFER.initialise
    return OFFER.initialise(settings(place, **changes))


def shown(place: str) -> Any:
    assert OFFER.describe
    return OFFER.describe(settings(place))


def opened(chosen: PostgresSettings) -> None:
    """Open a store the way a host does, and write to it."""

    async def use() -> None:
        store = OFFER.create(chosen)
        try:
            assert store.now() > 1e9
            await store.put("k", b"v")
        finally:
            await store.close()

    asyncio.run(use())


def refusal(chosen: PostgresSettings) -> str:
    """Return why a host does not start; the check before the start gives the same reason."""
    with pytest.raises(StoreUnavailableError) as caught:
        opened(chosen)
    try:
        checked = OFFER.missing(chosen)
    except StoreUnavailableError as error:
        checked = str(error)
    assert checked == str(caught.value)
    return checked


def test_a_new_store_has_an_id_and_describes_itself(place: str) -> None:
    said = created(place)
    facts = shown(place)
    url, name = split(place)
    shown_place = f"{url.replace('postgres@', '')} (schema {name})"
    assert said == f"created a new store in {shown_place}, with the id {facts['id']}"
    assert OFFER.missing(settings(place)) is None
    opened(settings(place, id=facts["id"]))
    facts = shown(place)
    assert (facts["values"], facts["claims"], facts["schema"]) == (1, 0, schema.VERSION)
    assert facts["server"].startswith("1")
    assert facts["created"].endswith("+00:00")
    assert "no standby" in facts["warning"]


def test_only_the_offer_warns_of_a_server_without_a_standby(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    created(place)
    assert OFFER.warnings
    # The test server is without fsync, too.
    assert any("has no standby" in each for each in OFFER.warnings(settings(place)))
    opened(settings(place))
    assert not caplog.records


def test_a_store_is_created_once(place: str) -> None:
    created(place)
    with pytest.raises(
        StoreUnavailableError, match=r"nothing was created: .* is already a store, with the id"
    ):
        created(place)


def test_a_host_does_not_create_a_missing_store(server: PostgresServer, place: str) -> None:
    assert "run `jackfield store create`" in refusal(settings(place))
    pinned = refusal(settings(place, id="0" * 32))
    assert "requires the one with the id" in pinned
    with pytest.raises(StoreUnavailableError, match="nothing was created"):
        created(place, id="0" * 32)
    _, name = split(place)
    assert server.execute(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{name}'") == "0"


def test_a_store_with_another_id_is_refused(place: str) -> None:
    created(place)
    assert "it is not the same store" in refusal(settings(place, id="0" * 32))


def test_a_schema_with_other_tables_is_refused(server: PostgresServer, place: str) -> None:
    _, name = split(place)
    server.execute(f"CREATE SCHEMA {name}; CREATE TABLE {name}.other (x int)")
    assert "contains another program's tables" in refusal(settings(place))
    with pytest.raises(StoreUnavailableError, match="nothing was created"):
        created(place)


def test_a_store_that_replaces_another_during_operation_is_refused(
    server: PostgresServer, place: str
) -> None:
    url, name = split(place)

    async def use() -> None:
        store = await PostgresStore.open(url, schema=name, patience=0.5)
        await asyncio.to_thread(
            server.execute,
            f"UPDATE {name}.identity SET id = '{'0' * 32}'; "
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND application_name = 'jackfield'",
        )
        with pytest.raises(StoreUnavailableError, match="not the same store"):
            await store.get("k")
        await store.close()

    asyncio.run(use())


def test_several_hosts_that_start_together_create_one_store(place: str) -> None:
    url, name = split(place)

    async def use() -> None:
        stores = await asyncio.gather(*(PostgresStore.open(url, schema=name) for _ in range(6)))
        for store in stores:
            await store.close()

    asyncio.run(use())


# --- versions of the tables ------------------------------------------------------------------------------


def test_newer_tables_are_used_while_they_are_compatible(server: PostgresServer, place: str) -> None:
    _, name = split(place)
    created(place)
    newer = schema.VERSION + 1
    server.execute(f"INSERT INTO {name}.versions VALUES ({newer}, {schema.VERSION})")
    opened(settings(place))
    server.execute(f"INSERT INTO {name}.versions VALUES ({newer + 1}, {newer})")
    assert "upgrade jackfield-store-postgres" in refusal(settings(place))


def test_older_tables_are_migrated_once_while_others_use_them(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, name = split(place)

    async def use() -> None:
        older = await PostgresStore.open(url, schema=name)
        next_one = schema.Migration(1, "ALTER TABLE claims ADD COLUMN added text")
        monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, next_one))
        monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
        newer = await asyncio.gather(*(PostgresStore.open(url, schema=name) for _ in range(3)))
        for store in (older, *newer):
            await store.claim(f"k{id(store)}", b"f", ttl=600)
            assert await store.complete(f"k{id(store)}", b"r")
            await store.close()

    asyncio.run(use())
    assert shown(place)["schema"] == schema.VERSION


# --- servers that cannot hold a store --------------------------------------------------------------------


def test_an_old_server_is_refused(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_check, "MINIMUM_VERSION", 99)
    assert "upgrade the server to version 99 or later" in refusal(settings(place))


def test_a_database_with_another_encoding_is_refused(server: PostgresServer, place: str) -> None:
    _, name = split(place)
    server.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
    assert "encoding UTF8" in refusal(settings(f"{server.uri(name)}#{name}"))


def test_an_unreachable_server_is_reported(place: str) -> None:
    _, name = split(place)
    assert "cannot be reached" in refusal(settings(f"postgresql://u:hidden@127.0.0.1:{free_port()}/x#{name}"))


def test_a_missing_database_is_reported(server: PostgresServer, place: str) -> None:
    _, name = split(place)
    assert "create the database" in refusal(settings(f"{server.uri('nowhere')}#{name}"))


def test_a_missing_right_is_reported(server: PostgresServer, place: str) -> None:
    _, name = split(place)
    server.execute(f"CREATE ROLE {name}_user LOGIN")
    mine = f"{server.uri(user=f'{name}_user')}#{name}"
    with pytest.raises(StoreUnavailableError, match="CREATE SCHEMA"):
        created(mine)
    created(place)
    assert "the schema, versions; grant USAGE on the schema" in refusal(settings(mine))
    server.execute(f"GRANT USAGE ON SCHEMA {name} TO {name}_user")
    server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {name}_user")
    assert "lacks rights on claims, counters, entries" in refusal(settings(mine))
    server.execute(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {name}_user")
    server.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO {name}_user")
    opened(settings(mine))


def test_a_wrong_password_is_reported_and_no_password_is_shown(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    with PostgresServer.temporary() as server:
        server.execute("CREATE ROLE someone LOGIN PASSWORD 'right'")
        access = server.folder / "pg_hba.conf"
        access.write_text("host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        server.execute("SELECT pg_reload_conf()")
        _, name = split(place)
        wrong = f"postgresql://someone:s3cret-word@127.0.0.1:{server.port}/postgres#{name}"
        said = refusal(settings(wrong))
    assert "rejected the user or the password" in said
    assert "s3cret-word" not in said + caplog.text
    broken = refusal(settings(f"postgresql://u:s3cret-word@[::1/x#{name}"))
    assert "s3cret-word" not in broken


@contextmanager
def pgbouncer(server: PostgresServer, folder: Path, mode: str) -> Iterator[int]:
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("PgBouncer is not installed (Debian's package pgbouncer)")
    port = free_port()
    folder.chmod(0o755)
    users, config = folder / "users.txt", folder / "pgbouncer.ini"
    users.write_text('"postgres" ""\n')
    config.write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={server.port} dbname=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {users}\npool_mode = {mode}\n"
    )
    process = subprocess.Popen(
        [program, "-u", "nobody", "-q", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_in_transaction_mode_is_refused(server: PostgresServer, mode: str) -> None:
    with tempfile.TemporaryDirectory() as name, pgbouncer(server, Path(name), mode) as port:
        place = f"postgresql://postgres@127.0.0.1:{port}/postgres#pooled_{mode}"
        created(f"{server.uri()}#pooled_{mode}")
        chosen = settings(place, patience=10.0)
        if mode == "session":
            opened(chosen)
        else:
            with pytest.raises(StoreUnavailableError, match="a connection pooler in transaction mode"):
                opened(chosen)


# --- settings --------------------------------------------------------------------------------------------


def test_the_url_can_come_from_the_environment(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url, name = split(place)
    monkeypatch.delenv("JACKFIELD_POSTGRES_URL", raising=False)
    chosen = PostgresSettings(schema=name)
    with pytest.raises(StoreUnavailableError, match="set the environment variable JACKFIELD_POSTGRES_URL"):
        OFFER.create(chosen)
    monkeypatch.setenv("JACKFIELD_POSTGRES_URL", url)
    assert "run `jackfield store create`" in str(OFFER.missing(chosen))


@pytest.mark.parametrize(
    "table",
    [{"url": "mysql://u:s3cret-word@h/db"}, {"schema": "pg_x"}, {"schema": 'a"b'}, {"id": "short"}],
)
def test_a_wrong_setting_is_refused_without_showing_a_password(table: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(PostgresSettings, table, "[stores.postgres]")
    assert "s3cret-word" not in str(caught.value)
