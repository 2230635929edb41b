"""The settings of the store."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from jackfield.settings import EnvironmentVariable, Format, Ge, Help, Le, MaxLen, Seconds, Secret

URL_VARIABLE = "JACKFIELD_POSTGRES_URL"
SHARDS_VARIABLE = "JACKFIELD_POSTGRES_SHARDS"
MAX_SHARDS = 64
"""Limited because a host opens connections to every shard, and queries all of them for some lists."""

_ID = re.compile(r"[0-9a-f]{32}")
_SCHEMES = ("postgresql://", "postgres://")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,54}")


def _id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise ValueError
    return value


def _url(value: str) -> str:
    if not value.startswith(_SCHEMES):
        raise ValueError
    return value


def _schema(value: str) -> str:
    # PostgreSQL reserves names that begin with pg_.
    if not _SCHEMA.fullmatch(value) or value.startswith("pg_"):
        raise ValueError
    return value


def _name(value: str) -> str:
    if not (value.isascii() and value.isprintable() and 0 < len(value) < 64):
        raise ValueError
    return value


Url = Annotated[str, Format("a URL that begins with postgresql://", _url), Secret()]
SchemaName = Annotated[str, Format("a name of lower-case letters, digits and underscores", _schema)]


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """`[stores.postgres]`"""

    url: Annotated[
        Url | None,
        Help(
            "The database: `postgresql://user:password@host:5432/name`; several hosts, separated by commas, "
            "for failover. If it has a password, use the environment variable instead."
        ),
    ] = None
    url_env: Annotated[
        EnvironmentVariable, Help("The environment variable that holds the URL if `url` is not set.")
    ] = URL_VARIABLE
    shards: Annotated[
        Annotated[tuple[Url, ...], MaxLen(MAX_SHARDS)],
        Secret(),
        Help(
            "The databases over which the store is spread, instead of `url`. Their order and number cannot "
            "be changed later. If they have passwords, use the environment variable instead.",
            default="not set",
        ),
    ] = ()
    shards_env: Annotated[
        EnvironmentVariable,
        Help(
            "The environment variable that holds the URLs of the shards, separated by spaces or line breaks, "
            "if neither `shards` nor `url` is set."
        ),
    ] = SHARDS_VARIABLE
    schema: Annotated[SchemaName, Help("The schema in the database that holds the store's tables.")] = (
        "jackfield"
    )
    id: Annotated[
        Annotated[str, Format("the id that `jackfield store show` prints", _id)] | None,
        Help("The id that the store must have; a store with a different id is rejected."),
    ] = None
    lease: Annotated[
        Seconds,
        Help(
            "How long a host that no longer answers is assumed to be alive; a quarter of this time if the "
            "host's connection to the database is gone too."
        ),
    ] = 10.0
    patience: Annotated[
        Seconds, Help("How long an operation waits for a database that does not answer before it fails.")
    ] = 5.0
    pool_size: Annotated[
        Annotated[int, Ge(1), Le(100)],
        Help(
            "How many connections a host opens for operations; it opens two more, and briefly a third if "
            "the server does not answer."
        ),
    ] = 8
    connect_timeout: Annotated[Seconds, Help("How long one attempt to connect may take.")] = 3.0
    statement_timeout: Annotated[
        Seconds, Help("How long a statement may run before the server cancels it.")
    ] = 5.0
    lock_timeout: Annotated[
        Seconds, Help("How long a statement waits for a row or table that another session has locked.")
    ] = 3.0
    durable_appends: Annotated[
        bool, Help("Make streams survive a crash or failover of the server, like all other data.")
    ] = True
    application_name: Annotated[
        Annotated[str, Format("at most 63 printable ASCII characters", _name)],
        Help("The name that the server's views and logs show for the host's connections."),
    ] = "jackfield"

    def __post_init__(self) -> None:
        if self.url and self.shards:
            raise ValueError("shards: set either `url`, for one database, or `shards`, for several, not both")
        if problem := _shards_problem(self.shards):
            raise ValueError(f"shards: {problem}")

    def addresses(self, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
        """Return the databases' URLs from the settings or the environment; empty if none are set.

        Raises `ValueError` if the environment contradicts itself.
        """
        if self.url or self.shards:
            return self.shards or (self.url or "",)
        url, shards = environ.get(self.url_env), tuple(environ.get(self.shards_env, "").split())
        if url and shards:
            raise ValueError(
                f"the environment variables {self.url_env}, for one database, and {self.shards_env}, for "
                "several, are both set; unset one of them"
            )
        if problem := _shards_problem(shards):
            raise ValueError(f"the environment variable {self.shards_env}: {problem}")
        return shards or ((url,) if url else ())


def _shards_problem(shards: tuple[str, ...]) -> str | None:
    """Return what is wrong with a list of URLs, without quoting any of them; None if nothing is."""
    if len(shards) > MAX_SHARDS:
        return f"{len(shards)} databases are too many; the limit is {MAX_SHARDS}"
    first: dict[str, int] = {}
    for number, url in enumerate(shards, 1):
        if not url.startswith(_SCHEMES):
            return f"shard {number} is not a URL that begins with postgresql://"
        if url.endswith(","):
            return f"shard {number} ends with a comma; separate the URLs by spaces"
        if first.setdefault(url, number) != number:
            return f"shards {first[url]} and {number} are the same database; list each database once"
    return None
