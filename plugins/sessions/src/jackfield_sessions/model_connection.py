"""The connection of a session to its model: reopened when it breaks, renewed before it expires.

Other modules see one connection, which ends only when it is closed or cannot be restored.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from jackfield.registry.registry import Registry
from jackfield.session.session import Session
from jackfield.transport.events import Closed, Event, ProviderError, TextDelta, Transcript
from jackfield.transport.protocol import (
    Connection,
    ConnectionConfig,
    StreamingConnection,
    Transport,
    TransportError,
    VoiceSettings,
    is_streaming,
)
from jackfield.transport.provider_errors import PROVIDER_ERRORS

from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.summary import Summarizer

_log = logging.getLogger(__name__)

RECONNECT_SECONDS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each attempt to reconnect; jitter adds up to half of it."""

MAX_WAIT_SECONDS = 30.0
"""The longest wait that a provider may request, in seconds."""

BUFFERED_AUDIO = 10 * 48_000
"""How many bytes of the user's speech are buffered while there is no connection: ten seconds."""

RETRY_SECONDS = (1.0, 3.0, 8.0)
"""Seconds before each retry of an answer that the provider failed to give."""

MARGIN_SECONDS = 2.0
"""A renewal starts this many seconds before the connection expires, even if the model is busy."""

CONTINUE = "The last answer did not reach the user. Continue from what is known, and answer now."


class Reconnected(NamedTuple):
    """The connection broke, and a new one is open."""


def base_config(
    registry: Registry,
    session: Session,
    transport: Transport,
    *,
    instructions: str,
    voice: VoiceSettings,
    answer_tokens: int = 0,
) -> ConnectionConfig:
    """Return the configuration that all connections of a session share: instructions, tools and voice."""
    mode, catalog = session.mode, registry.catalog(session.toolset)
    offered = {tool.id: tool for tool in catalog.offered(mode)}
    in_text = {tool.id: tool for tool in catalog.offered("text")}
    tools = {**in_text, **offered}
    return ConnectionConfig(
        mode,
        instructions,
        catalog.provider_schemas(transport.adapter(mode), mode),
        guides={name: tool.frozen.documentation for name, tool in offered.items()},
        voice=voice,
        answer_tokens=answer_tokens,
        writers=frozenset(name for name, tool in tools.items() if not tool.reads),
        confirmed=frozenset(
            name for name, tool in tools.items() if tool.manifest.requires_confirmation is True
        ),
        text_only={
            name: tool.frozen.documentation
            for name, tool in in_text.items()
            if mode == "voice" and name not in offered
        },
    )


class ModelConnection:
    """Sends to the model and reads its events, over successive provider connections."""

    def __init__(
        self,
        transport: Transport,
        config: ConnectionConfig,
        checkpoint: Checkpoint,
        *,
        summarize: Summarizer,
        notify: Callable[[str], Awaitable[None]],
        forms: bool = False,
    ) -> None:
        """`notify` informs the user of a provider error; `forms` says whether the client shows forms."""
        self.forms = forms
        """True if the client shows forms; a new value applies to the next connection."""
        self.renewals = 0
        """The number of connections before this one."""
        self.running_batches = 0
        """How many batches of calls are running; the answer follows their results."""
        self.streaming: StreamingConnection | None = None
        """The current connection, if it accepts partial results."""
        self.idle = asyncio.Event()
        """Set while the model has nothing to do."""
        self.idle.set()
        self._transport = transport
        self._config = config
        self._checkpoint = checkpoint
        self._summarize = summarize
        self._notify = notify
        self._connection: Connection | None = None
        self._connected = asyncio.Event()
        self._closed = asyncio.Event()
        self._unsent_audio = bytearray()
        self._renewal: asyncio.Task[None] | None = None
        self._retry: asyncio.Task[None] | None = None
        self._retries = 0
        self._superseded = 0
        # The number of unfinished responses that the user's next message has interrupted.

    def reconfigure(self, config: ConnectionConfig) -> bool:
        """Use another configuration for the next connections; return whether it differs."""
        differs, self._config = config != self._config, config
        return differs

    async def open(self) -> None:
        """Connect for the first time; raises `TransportError` if that fails."""
        self._use(await self._transport.connect(self._current_config()))
        self._connected.set()

    def _use(self, connection: Connection) -> None:
        self._connection = connection
        self.streaming = connection if is_streaming(connection) else None

    @property
    def broken(self) -> bool:
        """True while there is no connection."""
        return not self._connected.is_set()

    async def current(self) -> Connection:
        """Return the provider connection; wait while there is none."""
        if self._connection is None:
            raise TransportError("network", "the session is not connected to its model")
        await self._connected.wait()
        return self._connection

    async def send_audio(self, pcm: bytes) -> None:
        """Send the user's speech; without a connection, the last seconds of it are buffered."""
        if self._connected.is_set() and self._connection is not None:
            await self._connection.send_audio(pcm)
            return
        self._unsent_audio += pcm
        del self._unsent_audio[:-BUFFERED_AUDIO]

    async def events(self) -> AsyncIterator[Event | Reconnected]:
        """Yield the events of all connections, up to the final `Closed`."""
        while True:
            connection = await self.current()
            last = Closed("network", "the stream of events ended")
            async for event in connection.events():
                if isinstance(event, Closed):
                    last = event
                    break
                if isinstance(event, TextDelta | Transcript) and not event.text.isascii():
                    # Models also send halves of surrogate pairs, which cannot be encoded.
                    event = event._replace(text=event.text.encode("utf-8", "replace").decode())  # noqa: PLW2901
                yield event
            if connection is not self._connection:
                continue  # It was renewed: the next one is already open.
            code = last.code or "network"
            if self._closed.is_set() or not PROVIDER_ERRORS[code].recoverable:
                self._connected.set()
                yield last
                return
            self._connected.clear()
            yield ProviderError(code, last.detail)
            try:
                reconnected = await self._reconnect(resume=PROVIDER_ERRORS[code].recovery == "reconnect")
            except TransportError as error:
                self._closed.set()
                self._connected.set()
                yield Closed(error.code, error.detail)
                return
            self._connected.set()
            if not reconnected:
                yield Closed()
                return
            yield Reconnected()

    def supersede_response(self) -> None:
        """Record that the user's next message interrupts the pending response."""
        self._superseded += not self.running_batches

    def complete_response(self) -> bool:
        """Record the end of a response; return False if another response is due."""
        if self._superseded:
            # The user's next message has interrupted this response and still needs an answer.
            self._superseded -= 1
            return False
        self._checkpoint.response_pending = False
        self._checkpoint.submission = None
        self._checkpoint.correction = ""
        self._retries = 0
        self.idle.set()
        return True

    async def on_disconnect(self, error: ProviderError) -> None:
        """Compact the history for a new provider session if the old one, with its history, has expired."""
        if PROVIDER_ERRORS[error.code].recovery == "renew":
            await self._checkpoint.history.compact(self._summarize)

    def recover(self, error: ProviderError) -> bool:
        """React to a provider error on an open connection; return whether an answer may still come."""
        kind = PROVIDER_ERRORS[error.code]
        if kind.recovery == "renew":
            self.schedule_renewal(error.code, 0)
            return True
        pending = self._checkpoint.response_pending
        if kind.recoverable and pending and self._retries < len(RETRY_SECONDS):
            pause, self._retries = RETRY_SECONDS[self._retries], self._retries + 1
            self._retry = asyncio.create_task(self._retry_after(pause))
            return True
        return False

    def schedule_renewal(self, code: str, seconds: float) -> asyncio.Task[None]:
        """Renew the connection within this many seconds, unless a renewal is scheduled already."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew_when_idle(code, seconds))
        return self._renewal

    async def wait_renewed(self) -> None:
        """Wait for a renewal that is in progress, because the next message needs the new connection.

        Do not wait for a renewal that itself waits for the model to be idle.
        """
        if self._renewal is not None and self.idle.is_set():
            await asyncio.wait({self._renewal})

    async def renew(self) -> None:
        """Continue in a new connection, with a summary, the last turns, and a request for a pending answer.

        The new connection is opened before the old one is closed.
        """
        await self._checkpoint.history.compact(self._summarize)
        old = await self.current()
        self._use(await self._transport.connect(self._current_config()))
        self.renewals += 1
        await old.close()
        await self.retry_response()

    async def retry_response(self) -> bool:
        """Ask the current connection for the pending answer; return whether there was one."""
        checkpoint, history = self._checkpoint, self._checkpoint.history
        if not checkpoint.response_pending or self.running_batches:
            return False
        connection = await self.current()
        if history.awaits_answer and checkpoint.submission is not None:
            await checkpoint.submission.send(connection)
        elif history.awaits_answer:
            await connection.send_text(history.messages[-1].text)
        elif checkpoint.correction:
            await connection.send_context(checkpoint.correction, respond=True)
        else:
            await connection.send_context(CONTINUE, respond=True)
        return True

    async def close(self) -> None:
        """Close the connection for good."""
        for task in (self._renewal, self._retry):
            if task is not None:
                task.cancel()
        self._closed.set()
        if self._connection is not None:
            await self._connection.close()

    def _current_config(self, resume: str | None = None) -> ConnectionConfig:
        """Return the configuration of a connection that resumes the provider's session or starts one."""
        checkpoint, history, config = self._checkpoint, self._checkpoint.history, self._config
        messages = history.messages
        if checkpoint.response_pending and history.awaits_answer:
            # A message that is sent again must not also be in the history.
            messages = messages[:-1]
        instructions = config.instructions
        if history.summary:
            instructions += f"\n\nWhat was said earlier in this conversation, in short:\n{history.summary}"
        return replace(
            config,
            instructions=instructions,
            history=() if resume else tuple(messages),
            resume=resume,
            # A voice session asks by voice, even if the client has a screen.
            forms=self.forms and config.mode == "text",
        )

    async def _reconnect(self, *, resume: bool) -> bool:
        """Reconnect; return False if the connection was closed for good meanwhile."""
        token = self._connection.resume if resume and self._connection is not None else None
        failure = TransportError("network")
        for pause in RECONNECT_SECONDS:
            wait = max(pause * random.uniform(1, 1.5), failure.retry_after or 0.0)  # noqa: S311 - not a secret
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait, MAX_WAIT_SECONDS)):
                    await self._closed.wait()
            if self._closed.is_set():
                return False
            try:
                connection = await self._transport.connect(self._current_config(token))
            except TransportError as error:
                _log.warning("the model cannot be reached yet: %s", error)
                if not PROVIDER_ERRORS[error.code].recoverable:
                    raise
                # The provider may no longer accept the token that resumes its session.
                failure, token = error, None
            else:
                self._use(connection)
                if self._closed.is_set():
                    await connection.close()
                    return False
                self.renewals += 1
                unsent, self._unsent_audio = bytes(self._unsent_audio), bytearray()
                if unsent:
                    await connection.send_audio(unsent)
                return True
        raise failure

    async def _retry_after(self, pause: float) -> None:
        await asyncio.sleep(pause)
        if self._checkpoint.response_pending:
            await (await self.current()).send_context(CONTINUE, respond=True)

    async def _renew_when_idle(self, code: str, seconds: float) -> None:
        """Renew when the model is idle, at the latest shortly before the connection expires."""
        try:
            async with asyncio.timeout(max(0.0, seconds - MARGIN_SECONDS)):
                await self.idle.wait()
        except TimeoutError:
            _log.info("renewing the connection to the model while the model is busy")
        try:
            renewed_with = None
            # The configuration may change while the new connection is opened.
            while renewed_with != (self._config, self.forms):
                renewed_with = self._config, self.forms
                await self.renew()
        except TransportError as error:
            # The old connection is still open; when it ends, a new one is opened as after any break.
            _log.warning("the connection could not be renewed: %s", error)
            return
        if code == "going_away":
            await self._notify(code)
