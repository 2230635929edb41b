"""What models over plain requests have in common: a row of exchanges, no sound, no connection that lasts."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from jackfield_testkit.providers.model import Heard, NotOnThisProtocolError, ScriptedModel


class Exchange(Protocol):
    """A request, and the answer in the making."""

    @property
    def over(self) -> bool:
        """Whether the answer is complete, or nobody waits for it any more."""

    def break_off(self) -> None:
        """End the connection in the middle of the answer."""


E = TypeVar("E", bound=Exchange)


class RequestModel(ScriptedModel, Generic[E]):
    """The side of a scripted model that is the same wherever every turn is a request."""

    def __init__(self) -> None:
        self.exchanges: list[E] = []
        self._asked: asyncio.Queue[E] = asyncio.Queue()
        self._current: E | None = None
        self._made = 0
        self._envelopes: dict[str, Any] = {}

    def take(self, exchange: E) -> None:
        """The next request of the conversation."""
        self.exchanges.append(exchange)
        self._asked.put_nowait(exchange)

    async def results(self, *ids: str) -> dict[str, Any]:
        """Envelopes that came with an earlier request."""
        return {call_id: self._envelopes[call_id] for call_id in ids}

    async def closes(self, code: int = 1000, reason: str = "") -> None:  # noqa: ARG002
        """Break off in the middle of the answer."""
        exchange = self._current or await self._next()
        exchange.break_off()
        self._current = None

    def ends(self) -> None:
        """Answer what is still open with nothing."""
        waiting = [] if self._current is None else [self._current]
        while not self._asked.empty():
            waiting.append(self._asked.get_nowait())
        for exchange in waiting:
            if not exchange.over:
                self._answer_nothing(exchange)

    @abstractmethod
    def _answer_nothing(self, exchange: E) -> None:
        """End an exchange with an empty answer."""

    async def _next(self) -> E:
        self._current = await self._asked.get()
        return self._current

    async def hears_speech(self, transcript: str, *, after_ms: int = 200) -> Heard:  # noqa: ARG002
        """There is no sound."""
        _voice_only()

    async def speaks(self, text: str, *, ms: int) -> None:  # noqa: ARG002
        """There is no sound."""
        _voice_only()

    async def ends_speaking(self) -> None:
        """There is no sound."""
        _voice_only()

    async def is_interrupted(self) -> None:
        """There is no sound."""
        _voice_only()

    async def truncated(self) -> int:
        """There is no sound."""
        _voice_only()

    async def cancels(self, *ids: str) -> None:  # noqa: ARG002
        """There is no such message."""
        raise NotOnThisProtocolError("a request cannot take calls back; use calls(..., taken_back=True)")

    async def goes_away(self, seconds: float) -> None:  # noqa: ARG002
        """There is no such message."""
        raise NotOnThisProtocolError("requests have no lasting connection that could end")


def _voice_only() -> NoReturn:
    raise NotOnThisProtocolError("requests carry no sound; this step is for voice")
