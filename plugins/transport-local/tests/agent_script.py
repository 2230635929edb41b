"""A language model that writes what a test has laid down, with the interface of the real one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast

from jackfield_local.agent.agent import LocalAgent
from jackfield_local.agent.llama import LlamaModel, Prefix, PromptMessage
from jackfield_local.settings import LocalSettings
from local_requests import NOW
from local_session import Session, offered


class Asked(NamedTuple):
    """One request as the model gets it."""

    prefix: Prefix
    messages: tuple[PromptMessage, ...]
    schema: Mapping[str, Any]


class Scripted:
    """Writes one answer of its script at each request; an exception is raised."""

    def __init__(self, *answers: Any, ready: bool = True) -> None:
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.prepared: list[Prefix] = []
        self.ready = ready

    def is_ready(self, prefix: Prefix) -> bool:
        return self.ready and prefix in self.prepared

    def progress(self, prefix: Prefix) -> float:
        return float(self.is_ready(prefix))

    async def prepare(self, prefix: Prefix) -> None:
        self.prepared.append(prefix)

    async def complete(
        self, prefix: Prefix, messages: Sequence[PromptMessage], *, schema: Mapping[str, Any], max_tokens: int
    ) -> str:
        assert max_tokens > 0
        self.asked.append(Asked(prefix, tuple(messages), schema))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else json.dumps(answer)

    async def close(self) -> None: ...


OPTIONS = LocalSettings(tool_selection="model", time_zone="Europe/Berlin")


@asynccontextmanager
async def agent_session(
    tools: Mapping[str, tuple[str, dict[str, Any], str]], model: Scripted, **changes: Any
) -> AsyncIterator[Session]:
    """A conversation over some tools on a scripted model."""
    agent = LocalAgent(OPTIONS, clock=lambda: NOW, model=cast("LlamaModel", model))
    try:
        async with offered(tools, agent, **changes) as talk:
            yield talk
    finally:
        await agent.close()
