"""The contract tests of transports, for each way to OpenAI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from jackfield import Mode
from jackfield_openai import schemas
from jackfield_openai.settings import OpenAISettings
from jackfield_openai.transport import OpenAITransport
from jackfield_scripted import Refusal, Script
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit import TransportContractTests
from jackfield_testkit.transport import ServedTransport


class OpenAIContract(TransportContractTests, abstract=True):
    """What the two ways of declaring tools share."""

    @pytest.fixture(autouse=True)
    def _key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")


class TestOpenAI(OpenAIContract):
    @asynccontextmanager
    async def serve(
        self,
        mode: Mode,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        split: int = 0,
        delay: float = 0.0,
    ) -> AsyncIterator[ServedTransport]:
        async with OpenAIServer(*scripts, refusals=refusals, split=split, delay=delay) as server:
            options = OpenAISettings(base_url=server.base_url, retries=0)
            yield ServedTransport(OpenAITransport(options), server.models)

    def declare(self, mode: Mode, tool_id: str, parameters: dict[str, Any]) -> Any:
        adapt = schemas.realtime if mode == "voice" else schemas.chat
        return adapt(tool_id, "A tool.", parameters).declaration


class TestOpenAIStrict(OpenAIContract):
    modes = ("text",)

    @asynccontextmanager
    async def serve(
        self,
        mode: Mode,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        split: int = 0,
        delay: float = 0.0,
    ) -> AsyncIterator[ServedTransport]:
        async with OpenAIServer(*scripts, refusals=refusals, split=split, delay=delay) as server:
            options = OpenAISettings(base_url=server.base_url, retries=0, strict=True)
            yield ServedTransport(OpenAITransport(options), server.models)

    def declare(self, mode: Mode, tool_id: str, parameters: dict[str, Any]) -> Any:
        return schemas.strict(tool_id, "A tool.", parameters).declaration
