"""Every conversation of this host: opened, taken up again, watched over, handed on when the host stops."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import time
from collections import Counter
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from jackfield import Mode
from jackfield.protocol.close_codes import (
    ENDED,
    PROVIDER,
    REPLACED,
    RESTARTING,
    TOO_LONG,
    UNKNOWN,
)
from jackfield.registry.registry import RegistryError
from jackfield.runtime import Runtime
from jackfield.session.session import RECOVERY_SECONDS, Session
from jackfield.settings import Settings
from jackfield.store import StoreUnavailableError
from jackfield.transport.protocol import Transport, TransportError

from jackfield_sessions import events
from jackfield_sessions.admission import Admission, Identity, TurnedAwayError, check, unknown
from jackfield_sessions.archive import conversations
from jackfield_sessions.archive.sessions import FORGOTTEN
from jackfield_sessions.briefing import NOWHERE, Briefing, Place
from jackfield_sessions.conversation import Conversation
from jackfield_sessions.desk import Desk
from jackfield_sessions.draining import drain
from jackfield_sessions.feed import Feed
from jackfield_sessions.journal import Journal
from jackfield_sessions.options import SessionOptions
from jackfield_sessions.talk import Talk

_log = logging.getLogger(__name__)

_IS_ID = re.compile(r"[0-9a-f]{32}")

LOOK_SECONDS = 1.0
"""How often it is looked after conversations whose time is over."""


class Switchboard:
    """Who talks to whom."""

    def __init__(
        self, runtime: Runtime, transport: Transport, settings: Settings, options: SessionOptions
    ) -> None:
        self.runtime = runtime
        self.transport = transport
        self.options = options
        self.stopping = asyncio.Event()
        """Set when the host begins to drain."""
        self.reachable = True
        """Whether the model could be reached when it was last tried."""
        self.listeners: Counter[str] = Counter()
        """How many streams of events each user listens to."""
        self.host = os.urandom(8).hex()
        """Names this process among all that share the store."""
        self.talks: dict[str, Talk] = {}
        self.briefing = Briefing(runtime, settings, transport)
        self.admission = Admission(runtime, self.talks, options)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.desk = Desk(self.runtime, self.talks)

    async def open(
        self,
        mode: Mode,
        identity: Identity,
        place: Place = NOWHERE,
        *,
        handover: str | None = None,
        transport: Transport | None = None,
        forms: bool = False,
    ) -> Talk:
        """Begin a session; `TurnedAwayError` says why there is none. `forms`: the client shows forms."""
        await self.admission.admit(identity)
        with self.admission.one_more(identity.user):
            if handover:
                await self.kept(handover, identity, ended=True)
            transport = transport or self.transport
            session = await self.briefing.session(mode, identity, place, transport)
            talk = self._talk(session, Journal(session, self.runtime.store), place, transport, forms=forms)
            await self._reach(talk)
            if handover:
                talk.request = await self._handed_over(handover, identity)
            return talk

    async def resume(
        self,
        token: str,
        identity: Identity,
        place: Place = NOWHERE,
        *,
        transport: Transport | None = None,
        forms: bool = False,
    ) -> Talk:
        """Go on with a session, where it is or from where it was kept.

        With a `transport` of its own it goes on over that; a conversation there was is hung up first.
        """
        await self.admission.check_ban(identity)
        session_id, _, secret = token.partition(".")
        async with self._locks.setdefault(session_id, asyncio.Lock()):
            talk = self.talks.get(session_id)
            if talk is not None:
                check(talk.session, secret, identity)
                if await self._goes_on(talk, transport):
                    await talk.conversation.accept_forms(forms)
                    return talk
                check(talk.session, secret, identity)  # It may have ended, and the store not know it yet.
                self.talks.pop(session_id, None)
            if self.draining:
                raise TurnedAwayError(RESTARTING, "The host is restarting; resume again in a moment.")
            await self.kept(token, identity)  # Who may not have it must not take it from its host.
            holder = await events.take_over(session_id, self.runtime.store, self.host)
            # From here on what its last host keeps is read by nobody; what it had kept by now is read here.
            session = await self.kept(token, identity)
            session.holder = holder
            journal = await Journal.resumed(session, self.runtime.store)
            talk = self._talk(session, journal, place, transport or self.transport, forms=forms)
            await talk.take_up()
            await self._reach(talk)
            await talk.conversation.go_on()
            return talk

    async def _goes_on(self, talk: Talk, transport: Transport | None) -> bool:
        """Whether a talk can be gone on with; else whatever it still does is done when this returns."""
        if talk.closing is not None:
            await talk.over()
        elif not await talk.feed.events.still_here():
            await talk.drop()
        elif transport is not None:
            await talk.stop(REPLACED)
        return talk.closing is None

    async def kept(self, token: str, identity: Identity, *, ended: bool = False) -> Session:
        """A session as it was kept, for whoever holds its token; one that has ended where that will do."""
        session_id, _, secret = token.partition(".")
        if not _IS_ID.fullmatch(session_id):
            raise unknown()
        live = self.talks.get(session_id)
        try:
            session = live.session if live else await self.runtime.resume_session(session_id, _silent)
        except RegistryError as error:
            raise TurnedAwayError(UNKNOWN, str(error)) from None
        if session is None:
            raise unknown()
        check(session, secret, identity, ended=ended)
        return session

    async def end(self, talk: Talk) -> None:
        """The user hung up: the session is over for good."""
        await talk.stop(ENDED)

    async def watch(self) -> None:
        """Look after conversations whose time is over, and after the store, until cancelled."""
        pruned = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            for talk in list(self.talks.values()):
                closing = talk.due(self.options, now)
                if closing is not None and talk.closing is None:
                    self._beside(talk.stop(closing))
            await self._forget()
            if now - pruned > self.options.prune_seconds:
                pruned = now
                self._beside(self._prune())

    @property
    def draining(self) -> bool:
        """Whether the host is about to stop."""
        return self.admission.closed

    async def drain(self) -> None:
        """Take no new work, let running tools finish, and hand every session on as soon as its own have."""
        self.admission.closed = True
        self.stopping.set()
        await drain(self.talks, self.admission, self.desk, self.options.drain_seconds)

    async def close(self) -> None:
        """Let go of what is left."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _forget(self) -> None:
        """Let go of sessions that are being deleted, and keep nothing more of them."""
        with suppress(StoreUnavailableError):
            for key in await self.runtime.store.keys(FORGOTTEN) if self.talks else ():
                talk = self.talks.get(key.removeprefix(FORGOTTEN))
                if talk is not None and talk.closing is None:
                    talk.conversation.journal.abandon()
                    self._beside(talk.stop(UNKNOWN))

    async def _prune(self) -> None:
        try:
            await self.runtime.store.prune()
        except StoreUnavailableError as error:
            _log.warning("the store could not be cleared of what has expired: %s", error)

    def _talk(
        self, session: Session, journal: Journal, place: Place, transport: Transport, *, forms: bool
    ) -> Talk:
        journal.confirmed = True
        feed = Feed(
            events.Events(session, self.runtime.store),
            on_said=journal.was_told,
            on_taken=lambda: self._beside(talk.drop()),
        )
        talk = Talk(session, feed, self.runtime.store.now)
        session.publish = talk.publish
        spoken = self.options.spoken
        talk.conversation = Conversation(
            self.runtime,
            session,
            transport,
            talk.deliver,
            instructions=self.briefing.instructions(session, place, transport),
            omitted_guides=self.briefing.omitted_guides(session.mode, transport),
            answer_tokens=self.briefing.answer_tokens,
            journal=journal,
            voice=spoken._replace(language=place.language or spoken.language),
            dead_air=self.options.dead_air_seconds,
            forms=forms,
        )
        return talk

    async def _reach(self, talk: Talk) -> None:
        try:
            talk.provider_reason = self.briefing.choice.reason
            await talk.conversation.open()
            self.reachable = True
        except TransportError as error:
            # What a client sent may be at fault; that says nothing about the provider.
            self.reachable = error.code == "invalid_request_error"
            _log.error("session %s: the model cannot be reached: %s", talk.session.id, error)
            raise TurnedAwayError(PROVIDER, _sentence(error.code), error.retry_after) from None
        pinned = talk.session.registry_version
        if pinned != self.runtime.registry.version:
            text = f"This conversation began with tools that have changed since ({pinned})."
            fields = {"code": "registry_changed", "text": text, "suggestion": "What is unchanged goes on."}
            talk.publish("notification", fields)
        await conversations.note(self.runtime.store, talk.session)
        self.talks[talk.session.id] = talk
        talk.carry()
        self._beside(self._until_over(talk))

    async def _until_over(self, talk: Talk) -> None:
        closing = await talk.over()
        try:
            # Before it is let go of: whoever asks for it in between would find it as it was kept, alive.
            if closing in (ENDED, TOO_LONG):
                await self.runtime.end_session(talk.session)
        finally:
            if self.talks.get(talk.session.id) is talk:
                del self.talks[talk.session.id]
        _log.info("session %s: %s", talk.session.id, closing.reason)

    async def _handed_over(self, token: str, identity: Identity) -> str | None:
        """What the user wanted in a text session, said once and not again."""
        session, store = await self.kept(token, identity, ended=True), self.runtime.store
        request = session.changes.get("pending_message")
        if not request:
            return None
        if session.id in self.talks:
            session.change("pending_message", None)
            await session.save(store)
            return str(request)
        # The host that carries it still holds the request, and will keep it again with everything else.
        digest = hashlib.sha256(request.encode()).hexdigest()
        times = await store.add(f"handover/{session.id}/{digest}", 1, window=RECOVERY_SECONDS)
        return str(request) if times == 1 else None

    def _beside(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _silent(event: str, fields: Any, *, once: bool = False) -> None:
    """Where a kept session's events go that nobody carries."""


def _sentence(code: str) -> str:
    from jackfield.transport.troubles import TROUBLES

    kind = TROUBLES[code]
    return f"{kind.sentence} {kind.suggestion}"
