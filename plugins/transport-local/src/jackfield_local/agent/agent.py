"""The agent for all sessions of the process; its model, if it has one, is prepared in the background."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from jackfield.datetimes import is_zone
from jackfield.transport.protocol import ConnectionConfig, TransportError
from jackfield_embeddings import EmbeddingError, MiniLM, Vectors

from jackfield_local.agent.calls import AgentContext, Clock
from jackfield_local.agent.dialogue import AgentDialogue
from jackfield_local.agent.llama import LlamaModel, Prefix
from jackfield_local.agent.prompt import ModelDecider, static_prefix, takes_said_values
from jackfield_local.agent.results import ResponseStyle
from jackfield_local.agent.router import Router
from jackfield_local.agent.tools import text_only_tools, tools_of
from jackfield_local.connection import Dialogue
from jackfield_local.model_file import default_path, model_path, unavailable_reason
from jackfield_local.settings import LocalSettings, machine_zone

_log = logging.getLogger(__name__)

_ZONE = re.compile(r"\b(?:UTC|[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?)\b")
_SESSION_FACTS = "## Just now"
_EMBEDDINGS = MiniLM()


class LocalAgent:
    """Opens conversations, in which a router decides until the model, if there is one, is ready."""

    def __init__(
        self, settings: LocalSettings, clock: Clock | None = None, model: LlamaModel | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._model = model
        self._preparing: dict[Prefix, asyncio.Task[bool]] = {}

    @classmethod
    def with_model(cls, settings: LocalSettings, clock: Clock | None = None) -> LocalAgent:
        """Return an agent with the language model that the settings name."""
        caches = default_path().parent / "prompts"
        return cls(settings, clock, LlamaModel(model_path(settings), threads=settings.threads, caches=caches))

    async def open(self, opening: ConnectionConfig) -> Dialogue:
        """Open a conversation; the first one with these tools starts preparing the model for them."""
        if opening.purpose == "summary":
            # The model would take minutes, and the router writes no text; the session can summarise itself.
            raise TransportError("invalid_request_error", "the local agent cannot write free text")
        if isinstance(self._model, LlamaModel) and (reason := unavailable_reason(self._settings)):
            raise TransportError("invalid_request_error", reason)
        context = await asyncio.to_thread(self._context, opening)
        if self._model is not None and context.model is not None:
            prefix = context.model.prefix
            if prefix not in self._preparing or self._is_evicted(prefix):
                self._preparing[prefix] = asyncio.create_task(_prepare(self._model, prefix))
        return AgentDialogue(opening, context)

    def _is_evicted(self, prefix: Prefix) -> bool:
        """Return whether the model was prepared for these tools, and other tools have since replaced them."""
        task = self._preparing[prefix]
        return self._model is not None and task.done() and task.result() and self._model.progress(prefix) == 0

    async def ready(self) -> None:
        """Wait until the model is prepared for all conversations so far."""
        await asyncio.gather(*self._preparing.values())

    async def close(self) -> None:
        """Release the model."""
        for task in self._preparing.values():
            task.cancel()
        if self._preparing:
            await asyncio.wait(self._preparing.values())
        if self._model is not None:
            await self._model.close()

    def _context(self, opening: ConnectionConfig) -> AgentContext:
        name = session_zone(opening.instructions) or self._settings.time_zone or machine_zone()
        zone = ZoneInfo(name) if name else datetime.now().astimezone().tzinfo
        assert zone is not None  # noqa: S101 - `astimezone` always sets a zone
        tools = tools_of(opening)
        try:
            usable = [each for each in tools if takes_said_values(each)]
            router = Router(usable, embed_phrases, text_only_tools(opening))
        except EmbeddingError as error:
            raise TransportError("invalid_request_error", str(error)) from None
        style = ResponseStyle(opening.mode == "voice", zone, embed_phrases)
        decider = None
        if self._model is not None:
            prefix, named = static_prefix(tools)
            decider = ModelDecider(self._model, prefix, named)
            if left := [each.id for each in tools if each not in named]:
                _log.info(
                    "tools not offered to the model (no room in the prompt, or made-up example values): %s",
                    ", ".join(left),
                )
        return AgentContext(tools, router, decider, style, self._clock or (lambda: datetime.now(zone)), name)


async def _prepare(model: LlamaModel, prefix: Prefix) -> bool:
    """Prepare the model; return whether that worked."""
    try:
        await model.prepare(prefix)
    except Exception as error:  # noqa: BLE001 - the router decides if the model fails for any reason
        _log.warning("the router decides, because the model could not be prepared: %s", error)
        return False
    _log.info("the model is ready")
    return True


def session_zone(instructions: str) -> str:
    """Return the time zone in a session's instructions; empty if they name none."""
    facts = instructions.rpartition(_SESSION_FACTS)[2] if _SESSION_FACTS in instructions else ""
    return next((name for name in _ZONE.findall(facts) if name != "UTC" and is_zone(name)), "")


def embed_phrases(texts: Sequence[str]) -> Vectors:
    """Return a unit vector for each text; each phrase is embedded only once."""
    return np.array([_embed(text) for text in texts], np.float32).reshape(-1, 384)


@lru_cache(maxsize=4096)
def _embed(text: str) -> Vectors:
    row: Vectors = _EMBEDDINGS.embed([text])[0]
    return row
