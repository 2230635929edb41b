"""The contract tests of a knowledge base, with full text only and with the local model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield.offers import Services
from jackfield.store import MemoryStore
from jackfield_capability_types.knowledge import KnowledgeBase, Record
from jackfield_kb import embedders, jackfield_capabilities
from jackfield_kb.capability import LibraryKnowledge
from jackfield_kb.settings import KnowledgeSettings, open_library
from jackfield_testkit import KnowledgeContractTests, SessionStub
from jackfield_testkit.knowledge.harness import RECORDS


def knowledge(place: Path, records: Sequence[Record], **settings: Any) -> LibraryKnowledge:
    declared = KnowledgeSettings(place / "knowledge", **{"patience": 90, **settings})
    library = open_library(declared)
    library.write([(None, records)])
    library.refresh()
    library.close()
    (offer,) = jackfield_capabilities()
    made = offer.create(declared, Services(MemoryStore()))
    assert isinstance(made, LibraryKnowledge)
    return made


class TestWordsAlone(KnowledgeContractTests):
    async def create_knowledge_base(self, folder: Path, records: Sequence[Record]) -> KnowledgeBase:
        return await asyncio.to_thread(knowledge, folder, records, embeddings="off")


@pytest.mark.skipif(bool(embedders.missing()), reason="the local model is not installed")
class TestLocalModel(KnowledgeContractTests):
    async def create_knowledge_base(self, folder: Path, records: Sequence[Record]) -> KnowledgeBase:
        return await asyncio.to_thread(knowledge, folder, records, embeddings="local")


def test_a_namespace_without_access_appears_empty(tmp_path: Path) -> None:
    async def main() -> None:
        base = knowledge(tmp_path, RECORDS, embeddings="off", access={"studio": ("ann",)})
        for user, expected in (("ann", 1), ("ben", 0), (None, 0)):
            view = base.for_session(SessionStub(user))
            assert len(await view.search("lighthouse")) == expected
            assert len(await view.get(["project:lighthouse"])) == expected
        await base.close()

    asyncio.run(main())


def test_an_unreadable_library_is_a_transient_error_without_paths(tmp_path: Path) -> None:
    async def main() -> None:
        base = knowledge(tmp_path, RECORDS, embeddings="off")
        await base.close()
        (tmp_path / "knowledge" / "knowledge.db").write_bytes(b"no database at all" * 300)
        again = LibraryKnowledge.from_settings(KnowledgeSettings(tmp_path / "knowledge", "off"))
        with pytest.raises(ToolError) as raised:
            await again.for_session(SessionStub("ann")).search("lighthouse")
        assert raised.value.type is ErrorType.TRANSIENT
        assert raised.value.retryable
        assert str(tmp_path) not in raised.value.message
        await again.close()

    asyncio.run(main())


def test_a_slow_search_times_out(tmp_path: Path) -> None:
    async def main() -> None:
        base = knowledge(tmp_path, RECORDS, embeddings="off", patience=0.05)
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow(library: object) -> None:
            asyncio.run_coroutine_threadsafe(ended.wait(), loop).result()

        with pytest.raises(ToolError, match="did not answer in time"):
            await base.run(slow)
        ended.set()
        await base.close()

    asyncio.run(main())
