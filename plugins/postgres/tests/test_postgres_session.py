"""Sessions: which server they accept, what the server shows for them, and messages without secrets."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import asyncpg
import pytest
from jackfield_postgres import session
from jackfield_postgres.errors import CONNECTION_LOST, DEMOTED, UNREACHABLE
from jackfield_postgres.session import (
    KEEPALIVE,
    Connection,
    close,
    display_url,
    invalid_url_reason,
    server_urls,
    session_options,
)
from jackfield_testkit.postgres import PostgresServer, free_port


async def connect(url: str) -> Connection:
    return await session.connect(url, **session_options("a-test", timeout=10.0))


def error_of(url: str, *statements: str) -> BaseException:
    """Return the error of connecting and running statements."""

    async def run() -> None:
        connection = await connect(url)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await close(connection)

    with pytest.raises((*UNREACHABLE, ValueError, OverflowError)) as caught:
        asyncio.run(run())
    return caught.value


def test_a_session_has_a_name_and_keepalive_settings_and_can_be_closed_twice(server: PostgresServer) -> None:
    async def use() -> Any:
        connection = await connect(server.uri())
        await connection.execute(KEEPALIVE)
        found = await connection.fetchrow(
            "SELECT application_name, "
            "array(SELECT setting FROM pg_settings WHERE name LIKE 'tcp_keepalives%' ORDER BY name) "
            "FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        )
        await close(connection)
        await close(connection)
        assert connection.is_closed()
        return found

    name, probes = asyncio.run(use())
    assert name == "a-test"
    assert probes == ["3", "5", "2"]


def test_a_server_that_accepts_no_writes_is_not_used(server: PostgresServer) -> None:
    url = server.create_database("read_only")
    server.execute("ALTER DATABASE read_only SET default_transaction_read_only = on")
    error = error_of(url)
    assert isinstance(error, asyncpg.TargetServerAttributeNotMatched)
    assert isinstance(error, CONNECTION_LOST)


def test_a_server_that_became_read_only_is_demoted(server: PostgresServer) -> None:
    error = error_of(server.uri(), "SET default_transaction_read_only = on", "CREATE TABLE never (x int)")
    assert isinstance(error, DEMOTED)
    assert not isinstance(error, CONNECTION_LOST)


def test_only_a_missing_connection_counts_as_lost(server: PostgresServer) -> None:
    assert isinstance(error_of(f"postgresql://u@127.0.0.1:{free_port()}/x"), CONNECTION_LOST)
    for refused in (error_of(server.uri("nowhere")), error_of(server.uri(), "SELECT nothing")):
        assert isinstance(refused, UNREACHABLE)
        assert not isinstance(refused, CONNECTION_LOST)


def test_a_server_that_does_not_answer_does_not_hide_the_next_one(server: PostgresServer) -> None:
    async def use() -> tuple[int, BaseException]:
        # The system accepts connections to it, and nobody ever says a word.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            alone = f"127.0.0.1:{silent.getsockname()[1]}"
            connection = await connect(f"postgresql://postgres@{alone},127.0.0.1:{server.port}/postgres")
            port: int = await connection.fetchval("SELECT inet_server_port()")
            await close(connection)
            with pytest.raises(TimeoutError) as caught:
                await session.connect(
                    f"postgresql://postgres@{alone}/postgres", **session_options("a-test", timeout=0.2)
                )
            return port, caught.value

    port, error = asyncio.run(use())
    assert port == server.port
    assert isinstance(error, CONNECTION_LOST)


def test_the_error_of_a_server_that_answers_is_reported(server: PostgresServer) -> None:
    servers = f"127.0.0.1:{free_port()},127.0.0.1:{server.port},127.0.0.1:{free_port()}"
    error = error_of(f"postgresql://postgres@{servers}/nowhere")
    assert isinstance(error, asyncpg.InvalidCatalogNameError)


def test_every_server_of_a_url_gets_the_user_and_the_options() -> None:
    assert server_urls("postgresql://ann:s%40@db1:5433,[::1]:1/kb?sslmode=require") == [
        "postgresql://ann:s%40@db1:5433/kb?sslmode=require",
        "postgresql://ann:s%40@[::1]:1/kb?sslmode=require",
    ]
    assert server_urls("postgresql:///kb?host=/run") == ["postgresql:///kb?host=/run"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db1:5432,db2:5432/kb?sslmode=require", "postgresql://db1:5432,db2:5432/kb"),
        ("postgres://ann:s3c@ret@db1/kb", "postgresql://db1/kb"),
        ("postgresql://db1/kb?password=s3cret", "postgresql://db1/kb"),
        ("postgresql://ann:s3cret@[::/kb", "postgresql://..."),
    ],
)
def test_a_displayed_url_has_no_user_password_or_options(url: str, shown: str) -> None:
    assert display_url(url) == shown


@pytest.mark.parametrize(
    "url", ["postgresql://ann:s3cret@127.0.0.1:99999999/kb", "postgresql://ann:s3cret@[::/kb"]
)
def test_an_invalid_url_is_explained_without_its_password(url: str) -> None:
    error = error_of(url)
    assert isinstance(error, ValueError | OverflowError)
    reason = invalid_url_reason("store", error)
    assert reason.startswith("the URL of the store is not valid")
    assert "s3cret" not in reason
