"""The language model as a mind: one for all sessions of the process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from jackfield.transport.protocol import Opening, TransportError
from jackfield_conversation.summary import INSTRUCTIONS as SUMMARISING

from jackfield_local.llama.briefing import SPEAKING, choosing
from jackfield_local.llama.dialogue import LlamaDialogue
from jackfield_local.llama.engine import INSTALL, Brief, Engine
from jackfield_local.mind import Dialogue
from jackfield_local.models.weights import located
from jackfield_local.options import Options
from jackfield_local.planner.mind import Clock, Planner

_log = logging.getLogger(__name__)

_MAGIC = b"GGUF"


def lacking(chosen: Options) -> str:
    """What the language model cannot do without and is not here, in one sentence; empty when all is."""
    if find_spec("xllamacpp") is None:
        return f"the language model needs llama.cpp, which is not installed; run: {INSTALL}"
    path = model_file(chosen)
    if not path.is_file():
        if chosen.model_path:
            return f"[transports.local] model_path is {chosen.model_path!r}, and there is no such file"
        return f"the language model is not here yet ({path}); run: jackfield model get"
    try:
        with path.open("rb") as stream:
            magic = stream.read(len(_MAGIC))
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return "" if magic == _MAGIC else f"{path} is no GGUF file, so llama.cpp cannot load it"


def model_file(chosen: Options) -> Path:
    """The GGUF file: the one in the settings, or the one that `jackfield model get` fetches."""
    return Path(chosen.model_path).expanduser() if chosen.model_path else located()


class Llama:
    """Has tools chosen, and words found, by a language model in this process."""

    def __init__(self, chosen: Options, clock: Clock | None = None) -> None:
        self._options = chosen
        self._planner = Planner(chosen, clock)
        self._engine = Engine(model_file(chosen), threads=chosen.threads)
        self._reading: set[asyncio.Task[None]] = set()
        self._begun: set[Brief] = set()

    async def open(self, opening: Opening) -> Dialogue:
        """A new conversation; the model is loaded for the first one, and begins to read what it is told."""
        if opening.instructions == SUMMARISING:
            # It would keep everybody waiting for minutes; the kernel's own digest serves.
            return await self._planner.open(opening)
        if lack := lacking(self._options):
            raise TransportError("invalid_request_error", lack)
        await self._engine.load()
        grounds = await self._planner.grounds(opening)
        brief = choosing(grounds.judgement.tools)
        if brief is None:
            _log.warning(
                "%d tools are too many for the model; the planner chooses", len(opening.declarations)
            )
        unread = [each for each in (brief, SPEAKING) if each is not None and each not in self._begun]
        self._begun.update(unread)
        if unread:
            self._reading.add(task := asyncio.create_task(self._read(unread)))
            task.add_done_callback(self._reading.discard)
        return LlamaDialogue(opening, grounds, self._engine, brief)

    async def close(self) -> None:
        """Let go of the model."""
        for task in self._reading:
            task.cancel()
        if self._reading:
            await asyncio.wait(self._reading)
        await self._engine.close()
        await self._planner.close()

    async def _read(self, briefs: Sequence[Brief]) -> None:
        """Have briefs read before the first words come; who speaks sooner waits for one, not for all."""
        for brief in briefs:
            try:
                await self._engine.read(brief)
            except TransportError as error:
                _log.warning("the model could not read what it is told: %s", error)
