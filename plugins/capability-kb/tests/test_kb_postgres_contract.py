"""The contract tests of a knowledge base with its records in PostgreSQL, searched here or there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from jackfield.offers import Services
from jackfield.store import MemoryStore
from jackfield_capability_types.knowledge import KnowledgeBase, Record
from jackfield_kb import jackfield_capabilities
from jackfield_kb.capability import LibraryKnowledge
from jackfield_kb.library import Library
from jackfield_kb.settings import KnowledgeSettings, open_library
from jackfield_testkit import KnowledgeContractTests
from kb_fixtures import WordModel
from kb_postgres import shared, until

SETTINGS = KnowledgeSettings(patience=90)


def load(library: Library, records: Sequence[Record]) -> None:
    library.write([(None, records)])
    library.refresh()
    library.close()


def serve(base: LibraryKnowledge, records: Sequence[Record]) -> KnowledgeBase:
    """Start as a host does, and wait until everything is indexed."""
    base.started(None)
    done = {"up to date", "off: no embeddings"} | ({"empty", "missing"} if not records else set())
    until(lambda: set(base.library.stats().indexes.values()) <= done)
    return base


class PostgresTests(KnowledgeContractTests, abstract=True):
    """One host loads the records, and another one serves them."""

    @pytest.fixture(autouse=True)
    def _databases(self, create_database: Callable[[], str]) -> None:
        self.create_database = create_database

    async def create_knowledge_base(self, folder: Path, records: Sequence[Record]) -> KnowledgeBase:
        return await asyncio.to_thread(self.create, self.create_database(), folder, records)

    def create(self, url: str, folder: Path, records: Sequence[Record]) -> KnowledgeBase:
        raise NotImplementedError


class TestLocalIndex(PostgresTests):
    def create(self, url: str, folder: Path, records: Sequence[Record]) -> KnowledgeBase:
        load(shared(url, folder / "loader", WordModel()), records)
        return serve(LibraryKnowledge(shared(url, folder / "server", WordModel()), SETTINGS), records)


class TestSearchInPostgres(PostgresTests):
    def create(self, url: str, folder: Path, records: Sequence[Record]) -> KnowledgeBase:
        load(shared(url, None, WordModel()), records)
        return serve(LibraryKnowledge(shared(url, None, WordModel()), SETTINGS), records)


class TestWordsInPostgres(PostgresTests):
    def create(self, url: str, folder: Path, records: Sequence[Record]) -> KnowledgeBase:
        settings = KnowledgeSettings(folder, "off", patience=90, records=url, index="postgres")
        load(open_library(settings), records)
        (offer,) = jackfield_capabilities()
        made = offer.create(settings, Services(MemoryStore()))
        assert isinstance(made, LibraryKnowledge)
        return serve(made, records)


class TestLocalIndexOfOldestServer(TestLocalIndex):
    """The same on the oldest supported version."""

    @pytest.fixture(autouse=True)
    def _databases(self, create_oldest_database: Callable[[], str]) -> None:
        self.create_database = create_oldest_database


class TestSearchInOldestServer(TestSearchInPostgres):
    """The same on the oldest supported version."""

    @pytest.fixture(autouse=True)
    def _databases(self, create_oldest_database: Callable[[], str]) -> None:
        self.create_database = create_oldest_database
