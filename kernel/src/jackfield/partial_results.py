"""Streaming handlers: runs an async generator to its answer, and reports the partial results before it.

A handler that is an async generator yields `partial(...)` any number of times, then its answer. Partial
results go to the user's clients as `tool_progress` events. They are bounded, and they never become the
answer: a generator that ends, fails or is cancelled before it has yielded its answer has not answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Protocol, cast

import orjson

from jackfield.contract.context import ToolContext
from jackfield.contract.tool import Partial
from jackfield.handler_types import model_data
from jackfield.protocol.codec import encode

MAX_EVENTS = 500
"""Maximum number of events with partial results in one run of a handler."""

MAX_BYTES = 64 * 1024
"""Maximum size of all partial results in one run of a handler, as JSON."""

INTERVAL_SECONDS = 0.1
"""Minimum time between two events; partial results in between are sent together."""


class StreamWithoutAnswerError(Exception):
    """A streaming handler ended without an answer."""


class PartialReceiver(Protocol):
    """The part of a handler's context that takes partial results."""

    def report_partial(self, result: Partial, number: int, *, truncated: bool) -> bool:
        """Report a partial result; return False to receive no more."""


def streaming(generate: Callable[[dict[str, Any], ToolContext], AsyncGenerator[Any, None]]) -> Any:
    """Return an async generator function as a handler that returns its answer."""

    async def run_to_answer(args: dict[str, Any], ctx: ToolContext) -> Any:
        stream = PartialStream(cast("PartialReceiver", ctx))
        try:
            # Closed here rather than by the garbage collector, so that the generator ends before its call.
            async with aclosing(generate(args, ctx)) as values:
                async for value in values:
                    if not isinstance(value, Partial):
                        return value
                    stream.send(value)
        finally:
            stream.close()
        raise StreamWithoutAnswerError(
            "the handler ended without an answer; yield it after the partial results"
        )

    return run_to_answer


class PartialStream:
    """The partial results of one run: in order, at a limited rate, up to a limited number and size.

    Results that come too fast are sent together with the following ones. Results beyond the limits are
    dropped, because the answer contains everything.
    """

    __slots__ = ("_bytes", "_held", "_next_at", "_number", "_open", "_receiver", "_timer")

    def __init__(self, receiver: PartialReceiver) -> None:
        self._receiver = receiver
        self._held: Partial | None = None
        self._number = 0
        self._bytes = 0
        self._next_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._open = True

    def send(self, result: Partial) -> None:
        """Report a partial result now, or together with others as soon as the rate allows it."""
        if not self._open:
            return
        data, size = _as_json(result.data)
        room = MAX_BYTES - self._bytes
        self._bytes += size + len(result.message)
        if size > room:
            # The beginning of a text is still useful; the beginning of a record is not.
            data = (
                data.encode()[: max(room - 2, 0)].decode("utf-8", "ignore") if isinstance(data, str) else []
            )
        self._held = joined(self._held, result._replace(data=data))
        if size > room or self._number + 1 >= MAX_EVENTS:
            self._flush(truncated=True)
            self._open = False
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            delay = self._next_at - loop.time()
            if delay <= 0:
                self._flush()
            else:
                self._timer = loop.call_later(delay, self._flush)

    def close(self) -> None:
        """Send the partial results that are held back, because the outcome of the call follows."""
        self._flush()
        self._open = False

    def _flush(self, *, truncated: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._held is None or not self._open:
            return
        held, self._held = self._held, None
        self._number += 1
        self._next_at = asyncio.get_running_loop().time() + INTERVAL_SECONDS
        self._open = self._receiver.report_partial(held, self._number, truncated=truncated)


def _as_json(data: Any) -> tuple[str | list[Any], int]:
    """Return text as it is and other data as a list of items, as plain JSON, with its encoded size."""
    shaped = data if isinstance(data, str | list) else [data]
    try:
        encoded = orjson.dumps(shaped, default=model_data)
    except (TypeError, ValueError, RecursionError):
        # A partial result must not make its call fail, so values that are not JSON are replaced.
        encoded = encode({"data": shaped})
        return orjson.loads(encoded)["data"], len(encoded)
    # A copy, because the handler may change the data afterwards.
    return shaped if isinstance(shaped, str) else orjson.loads(encoded), len(encoded)


def joined(held: Partial | None, result: Partial) -> Partial:
    """Join two partial results into one of text or of items, with the newer message and fraction."""
    if held is None:
        return result
    first, then = held.data, result.data
    if isinstance(first, str) and isinstance(then, str):
        data: Any = first + then
    else:
        data = [*_items(first), *_items(then)]
    fraction = held.fraction if result.fraction is None else result.fraction
    return Partial(data, result.message or held.message, fraction)


def _items(data: Any) -> list[Any]:
    return data if isinstance(data, list) else [data]
