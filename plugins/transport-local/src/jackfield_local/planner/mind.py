"""The planner as a mind: one model for all sessions of the process, and what each session needs of it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import orjson
from jackfield.transport.protocol import Opening, ToolResult, TransportError
from jackfield_conversation.summary import INSTRUCTIONS as SUMMARISING

from jackfield_local.mind import Dialogue, Thought
from jackfield_local.options import Options
from jackfield_local.zone import own_zone, zone_in

if TYPE_CHECKING:
    from jackfield_local.planner.deciding.decide import Judgement
    from jackfield_local.planner.dialogue import Grounds

_REGISTRIES = 8
"""So many sets of tools are kept in mind at once."""

Clock = Callable[[], datetime]


class Planner:
    """Chooses tools by the examples in their guides."""

    def __init__(self, chosen: Options, clock: Clock | None = None) -> None:
        self._options = chosen
        self._clock = clock
        self._known: dict[tuple[str, str, bytes], Judgement] = {}
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="jackfield-planner")

    async def open(self, opening: Opening) -> Dialogue:
        """A new conversation; the model is loaded with the first one."""
        if opening.instructions == SUMMARISING:
            return _Silent()
        from jackfield_local.planner.dialogue import PlannerDialogue

        return PlannerDialogue(opening, await self.grounds(opening))

    async def grounds(self, opening: Opening) -> Grounds:
        """What a conversation with these tools stands on."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._grounds, opening)

    async def close(self) -> None:
        """Wait for no more work."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _grounds(self, opening: Opening) -> Grounds:
        from jackfield_local.models.phrases import embed_phrases
        from jackfield_local.planner.dialogue import Grounds
        from jackfield_local.planner.telling.told import Manners

        name = zone_in(opening.instructions) or self._options.time_zone or own_zone()
        zone = ZoneInfo(name) if name else datetime.now().astimezone().tzinfo
        assert zone is not None  # noqa: S101 - `astimezone` always gives one
        clock = self._clock or (lambda: datetime.now(zone))
        judgement = self._judgement(opening, name, clock)
        return Grounds(judgement, Manners(opening.mode, zone, embed_phrases), clock, self._executor)

    def _judgement(self, opening: Opening, zone: str, clock: Clock) -> Judgement:
        from jackfield_embeddings import EmbeddingError

        from jackfield_local.models.phrases import embed_phrases
        from jackfield_local.planner.choosing.chooser import Chooser
        from jackfield_local.planner.deciding.decide import Judgement
        from jackfield_local.planner.reading.tool import tools_of

        known = opening.mode, zone, _fingerprint(opening)
        judgement = self._known.get(known)
        if judgement is None:
            tools = tools_of(opening)
            try:
                chooser = Chooser(tools, embed_phrases, clock())
            except EmbeddingError as error:
                raise TransportError("invalid_request_error", str(error)) from None
            judgement = self._known[known] = Judgement(tools, chooser, opening.mode, zone)
            while len(self._known) > _REGISTRIES:
                del self._known[next(iter(self._known))]
        return judgement


def _fingerprint(opening: Opening) -> bytes:
    """The tools of a session in a few bytes: sessions of one registry need them read only once."""
    tools = [dict(opening.declarations), dict(opening.guides)]
    return hashlib.sha256(orjson.dumps(tools, option=orjson.OPT_SORT_KEYS)).digest()


class _Silent:
    """A planner cannot summarise: it says nothing, so that the kernel's own digest serves."""

    async def answer(self, text: str) -> AsyncIterator[Thought]:  # noqa: ARG002
        """Nothing."""
        return
        yield

    async def go_on(self, results: Sequence[ToolResult]) -> AsyncIterator[Thought]:  # noqa: ARG002
        """Nothing."""
        return
        yield

    def learn(self, text: str) -> None:
        """Nothing."""

    async def respond(self) -> AsyncIterator[Thought]:
        """Nothing."""
        return
        yield

    def interrupted(self, heard: str) -> None:
        """Nothing."""
