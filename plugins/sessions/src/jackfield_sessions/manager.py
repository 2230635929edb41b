"""Opens, resumes and closes the live sessions of a host.

Everything that uses sessions (WebSockets, HTTP, browser calls, tests) starts here.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from jackfield import Mode
from jackfield.components import ProviderChoice
from jackfield.confirmation import Confirmations
from jackfield.orchestrator import CallResult
from jackfield.protocol.close_codes import (
    BANNED,
    ENDED,
    INTERNAL,
    MAX_DURATION,
    PROVIDER_UNAVAILABLE,
    REPLACED,
    RESTARTING,
    UNKNOWN_SESSION,
)
from jackfield.protocol.codec import event_fields
from jackfield.protocol.messages import GoingAway, Notification, OfferedModel, OfferedTool, SessionInfo
from jackfield.registry.registry import RegistryError, UntrustedRegistryError
from jackfield.runtime import Runtime
from jackfield.session.session import RECOVERY_SECONDS, Session
from jackfield.settings import Settings
from jackfield.store import StoreUnavailableError
from jackfield.transport.protocol import Transport, TransportError
from jackfield.transport.provider_errors import PROVIDER_ERRORS
from jackfield.user_slots import UserSlots

from jackfield_sessions import archive
from jackfield_sessions.admission import (
    Admission,
    Identity,
    SessionRefused,
    check_access,
    owns,
    session_ended,
    unknown_session,
)
from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.direct_calls import DirectCalls, drop_event
from jackfield_sessions.events import claim_ownership
from jackfield_sessions.live_session import LiveSession
from jackfield_sessions.options import SessionOptions
from jackfield_sessions.orphaned_calls import OrphanedCalls
from jackfield_sessions.owning_hosts import OwningHosts
from jackfield_sessions.session_factory import NO_LOCALE, ClientLocale, SessionFactory

_log = logging.getLogger(__name__)

_IS_ID = re.compile(r"[0-9a-f]{32}")

MAINTENANCE_SECONDS = 1.0
"""Seconds between two checks for sessions that are due to close."""

CHECK_SECONDS = 5.0
"""Seconds between two checks for banned users and for calls of hosts that died."""

STREAM_SECONDS = 86400.0
"""The longest time that an event stream counts against its user's limit."""

CLOSE_SECONDS = 2.0
"""How long closing and saving a session may take when the host stops."""


class SessionManager:
    """The live sessions of one host."""

    def __init__(
        self,
        runtime: Runtime,
        transport: Transport,
        settings: Settings,
        options: SessionOptions,
        models: Mapping[str, Transport] = MappingProxyType({}),
    ) -> None:
        """`models` are the transports of the models that users may choose, by name."""
        self.runtime = runtime
        self.transport = transport
        self.models = models
        self.options = options
        self.stopping = asyncio.Event()
        """Set when the host begins to drain."""
        self.model_reachable = True
        """True if the last attempt to reach the model succeeded."""
        self.host_id = runtime.hosts.id
        """Identifies this process among those that share the store."""
        self.live: dict[str, LiveSession] = {}
        """The live sessions of this host, by their ids."""
        self.owners = OwningHosts(runtime, options.session_seconds)
        """Which host owns which live session."""
        self.streams = UserSlots(runtime.store, runtime.hosts, "stream", STREAM_SECONDS)
        """The event streams that users follow on all hosts."""
        self.factory = SessionFactory(runtime, settings, transport)
        self.admission = Admission(runtime, self.live, options, self.owners.slots)
        self.direct_calls = DirectCalls(runtime, self.live)
        self._orphaned_calls = OrphanedCalls(runtime, self.direct_calls)
        self._banned: set[str] = set()
        """The users, and sessions without a user, that were banned at the last check."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(
        self,
        mode: Mode,
        identity: Identity,
        locale: ClientLocale = NO_LOCALE,
        *,
        handover: str | None = None,
        transport: Transport | None = None,
        forms: bool = False,
        model: str | None = None,
    ) -> LiveSession:
        """Open a session; raise `SessionRefused` if that is not possible.

        `handover` is the token of a session whose pending request this session answers; `forms` says whether
        the client shows forms; `model` is the name of the model that the user chose.
        """
        if model is not None and model not in self.models:
            known = ", ".join(self.models) or "none"
            raise SessionRefused(
                PROVIDER_UNAVAILABLE, f"There is no model {model!r}; the available models are: {known}."
            )
        transport = transport or self._transport(model)
        self.factory.check_mode(mode, transport)
        await self.admission.admit(identity)
        session_id = os.urandom(16).hex()
        async with self.admission.reserve_slot(identity.user, session_id):
            if handover:
                await self.load_session(handover, identity, ended=True)
            session = await self.factory.create(
                mode, identity, locale, transport, session_id=session_id, model=model
            )
            checkpoint = Checkpoint(session, self.runtime.store)
            live = self._live_session(session, checkpoint, locale, transport, forms=forms)
            await self._connect_model(live)
            if handover:
                live.request = await self._take_request(handover, identity)
            return live

    async def resume(
        self,
        token: str,
        identity: Identity,
        locale: ClientLocale = NO_LOCALE,
        *,
        transport: Transport | None = None,
        forms: bool = False,
    ) -> LiveSession:
        """Return a session that is live here, or resume it from its checkpoint.

        With `transport`, the session continues over that transport; the previous connection is closed first.
        """
        await self.admission.check_ban(identity)
        try:
            await self.runtime.check_signatures()
        except UntrustedRegistryError as error:
            raise SessionRefused(INTERNAL, str(error)) from None
        session_id, _, secret = token.partition(".")
        async with self._locks.setdefault(session_id, asyncio.Lock()):
            live = await self._live(session_id, secret, identity)
            if live is not None:
                check_access(live.session, secret, identity)
                if await self._is_usable(live, transport):
                    await live.accept_forms(forms)
                    return live
                # The session may have ended although the store does not say so yet.
                check_access(live.session, secret, identity)
                self.live.pop(session_id, None)
            if self.draining:
                raise SessionRefused(RESTARTING, "The host is restarting; try again in a moment.")
            # Before the claim: a client without access must not take the session from its host.
            session = await self.load_session(token, identity)
            transport = transport or self._transport(session.model)
            self.factory.check_mode(session.mode, transport)
            epoch = await claim_ownership(session_id, self.runtime.store, self.host_id)
            # After the claim: later records of the previous owner are ignored.
            session = await self.load_session(token, identity, fresh=True)
            session.epoch = epoch
            checkpoint = await Checkpoint.load(session, self.runtime.store)
            live = self._live_session(session, checkpoint, locale, transport, forms=forms)
            await live.recover()
            # Other hosts learn from this that their copies of the session are out of date.
            await session.remove_superseded(self.runtime.store)
            await self._connect_model(live)
            await live.resume_pending_work()
            return live

    async def load_session(
        self, token: str, identity: Identity, *, ended: bool = False, fresh: bool = False
    ) -> Session:
        """Return the session that a token identifies, live or saved; with `ended`, also one that has ended.

        Clients' calls share the object of a saved session; with `fresh`, it is loaded again instead.
        """
        session_id, _, secret = token.partition(".")
        if not _IS_ID.fullmatch(session_id):
            raise unknown_session()
        live = await self._live(session_id, secret, identity)
        try:
            if live is not None:
                session: Session | None = live.session
            elif fresh:
                session = await self.runtime.resume_session(session_id, drop_event)
            else:
                session = await self.direct_calls.load(session_id)
        except UntrustedRegistryError as error:
            raise SessionRefused(INTERNAL, str(error)) from None
        except RegistryError as error:
            raise SessionRefused(UNKNOWN_SESSION, str(error)) from None
        if session is None:
            raise unknown_session()
        check_access(session, secret, identity, ended=ended)
        return session

    async def issue_token(self, session_id: str, identity: Identity) -> str:
        """Return a token that resumes a session of this user; raise `SessionRefused` if there is none.

        The store has only a hash of the token. So a session that is not live here gets a new token, and this
        host takes the session over, because its previous owner would save the old hash again.
        """
        if not _IS_ID.fullmatch(session_id):
            raise unknown_session()
        async with self._locks.setdefault(session_id, asyncio.Lock()):
            live, store = self.live.get(session_id), self.runtime.store
            if live is not None and owns(identity, session_id, live.session.user):
                if await self._is_usable(live, None):
                    return live.session.token
                self.live.pop(session_id, None)
            await self._load_own(session_id, identity)
            epoch = await claim_ownership(session_id, store, self.host_id)
            session = await self._load_own(session_id, identity)
            session.epoch = epoch
            session.renew_secret()
            await session.save(store)
            await session.remove_superseded(store)
            await Confirmations(store).renew_tokens(session)
            return session.token

    async def _live(self, session_id: str, secret: str, identity: Identity) -> LiveSession | None:
        """Return a session that is live here; None if another host has taken it over to renew its token."""
        live = self.live.get(session_id)
        if live is None or live.session.verify_secret(secret):
            return live
        if not owns(identity, session_id, live.session.user) or await live.hub.log.is_owner():
            return live
        await live.release()
        self.live.pop(session_id, None)
        return None

    async def _load_own(self, session_id: str, identity: Identity) -> Session:
        """Return a user's saved session; raise `SessionRefused` if it cannot be resumed."""
        try:
            session = await self.runtime.resume_session(session_id, drop_event)
        except UntrustedRegistryError as error:
            raise SessionRefused(INTERNAL, str(error)) from None
        except RegistryError as error:
            raise SessionRefused(UNKNOWN_SESSION, str(error)) from None
        if session is None or not owns(identity, session_id, session.user):
            raise unknown_session()
        if not session.active:
            raise session_ended()
        return session

    async def end(self, live: LiveSession) -> None:
        """End a session for good, at the user's request."""
        await live.close(ENDED)

    async def resolve_confirmation(self, session: Session, token: str, *, approve: bool) -> CallResult | None:
        """Carry out a user's decision; return the outcome of the call, or None for an unknown token."""
        live = self.live.get(session.id)
        if live is None or live.closing is not None:
            return await self.direct_calls.resolve_confirmation(session, token, approve=approve)
        return await self.direct_calls.to_the_end(_resolve_live(live, token, approve=approve))

    async def adopt_registry(self, tools: Sequence[str] = ()) -> None:
        """Let all sessions use the registry that the runtime has reloaded, and notify their clients.

        `tools` are the tools that were added, changed or removed.
        """
        self.factory.compose_prompts()
        for live in [each for each in self.live.values() if each.closing is None]:
            session, transport = live.session, live.transport
            before, now = session.registry_version, self.runtime.registry.version
            instructions = self.factory.instructions(session, live.locale or NO_LOCALE, transport)
            await live.adopt_registry(instructions, self.factory.omitted_guides(session, transport))
            if before != now:
                self._notify_adopted(session, tools)

    def _notify_adopted(self, session: Session, tools: Sequence[str]) -> None:
        registry = self.runtime.registry.version
        text = f"The tools have changed; this conversation continues with registry {registry}."
        suggestion = f"Changed: {', '.join(tools)}." if tools else "See the changes with `jackfield diff`."
        changed = Notification(
            code="registry_reloaded", text=text, suggestion=suggestion, registry=registry, tools=tuple(tools)
        )
        session.publish(*event_fields(changed))

    def session_info(self, live: LiveSession, *, resumed: bool, operator: bool) -> SessionInfo:
        """Return the first message to a client; operators see why the provider was chosen."""
        choice, session = self._provider_choice(live.session), live.session
        tools = self.runtime.registry.catalog(session.toolset).summaries(session.mode)
        return SessionInfo(
            session=session.id,
            token=session.token,
            mode=session.mode,
            user=session.user or "",
            provider=choice.name,
            provider_reason=live.provider_reason if operator else None,
            provider_hints=tuple(choice.hints) if operator else (),
            registry=session.registry_version,
            tools=[OfferedTool(id=tool, summary=summary) for tool, summary in tools.items()],
            resumed=resumed,
            state=session.state.value,
            last_event=live.hub.log.last,
            partial=live.partial_answer,
            model=session.model,
            models=[self._offered_model(name) for name in self.models],
            now=self.runtime.store.now(),
        )

    def _transport(self, model: str | None) -> Transport:
        """Return the transport of a model, or the default one if the settings do not define the model."""
        return self.models.get(model or "", self.transport)

    def _provider_choice(self, session: Session) -> ProviderChoice:
        """Return which provider answers a session, and why."""
        if session.model is not None and session.model in self.models:
            return self.runtime.components.model_choices[session.model]
        return self.factory.provider_choice

    def _offered_model(self, name: str) -> OfferedModel:
        provider = self.runtime.components.model_choices[name].name
        modes: list[Mode] = sorted(self.models[name].modes)
        return OfferedModel(name=name, provider=provider, modes=modes)

    async def run_maintenance(self) -> None:
        """Close sessions that are due, inform other hosts, and prune the store, until cancelled."""
        pruned = checked = time.monotonic()
        while True:
            await asyncio.sleep(MAINTENANCE_SECONDS)
            now = time.monotonic()
            for live in list(self.live.values()):
                closing = live.close_due(self.options, now)
                if closing is not None and live.closing is None:
                    self.spawn(live.close(closing))
            with suppress(StoreUnavailableError):
                await self._close_deleted()
                await self.admission.answer_requests_for_room()
                await self.owners.update(self.live)
                if now - checked > CHECK_SECONDS:
                    checked = now
                    await self._close_banned()
                    if not self.draining:
                        self.spawn(self._orphaned_calls.sweep())
            if now - pruned > self.options.prune_seconds:
                pruned = now
                self.spawn(self._prune())

    @property
    def draining(self) -> bool:
        """True if the host is stopping."""
        return self.admission.closed

    async def drain(self) -> None:
        """Accept no new work, wait for running tools, and close each session when its tools are done."""
        self.admission.closed = True
        self.stopping.set()
        deadline = time.monotonic() + self.options.drain_seconds
        # Sessions that were being opened when draining began are closed too.
        while self.live or (self.admission.opening and time.monotonic() < deadline):
            live_sessions = list(self.live.values())
            for live in live_sessions:
                live.hub.send_transient(GoingAway(reason=RESTARTING.reason))
            await asyncio.gather(asyncio.sleep(0.01), *(_drain(live, deadline) for live in live_sessions))
            for live in live_sessions:
                self.live.pop(live.session.id, None)
                await self.owners.remove(live)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self.direct_calls.wait()

    def release_stream(self, user: str, stream_id: str) -> None:
        """Stop counting an event stream that has ended."""
        self.streams.forget(user, stream_id)
        self.spawn(self._release_stream(user, stream_id))

    async def _release_stream(self, user: str, stream_id: str) -> None:
        # If the store is unavailable, other hosts count the stream until this host stops reporting.
        with suppress(StoreUnavailableError):
            await self.streams.release(user, stream_id)

    async def close(self) -> None:
        """Remove the store's entries of the remaining sessions, and cancel background tasks."""
        for live in self.live.values():
            await self.owners.remove(live)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _live_session(
        self,
        session: Session,
        checkpoint: Checkpoint,
        locale: ClientLocale,
        transport: Transport,
        *,
        forms: bool,
    ) -> LiveSession:
        voice = self.options.spoken
        live = LiveSession(
            self.runtime,
            session,
            transport,
            instructions=self.factory.instructions(session, locale, transport),
            checkpoint=checkpoint,
            omitted_guides=self.factory.omitted_guides(session, transport),
            answer_tokens=self.factory.answer_tokens,
            voice=voice._replace(language=locale.language or voice.language),
            dead_air=self.options.dead_air_seconds,
            forms=forms,
            claim_checking=self.options.claim_checking,
        )
        live.locale = locale
        return live

    async def _is_usable(self, live: LiveSession, transport: Transport | None) -> bool:
        """Return whether a live session can continue; if not, end it in this process."""
        if live.closing is not None:
            await live.wait_closed()
        elif not await live.hub.log.is_owner():
            await live.release()
        elif transport is not None:
            await live.close(REPLACED)
        return live.closing is None

    async def _connect_model(self, live: LiveSession) -> None:
        """Connect a session to its model and start it."""
        session = live.session
        try:
            live.provider_reason = self._provider_choice(session).reason
            await live.open()
            self.model_reachable = True
        except TransportError as error:
            # An invalid request is the client's fault, so the provider still counts as reachable.
            self.model_reachable = error.code == "invalid_request_error"
            _log.error("session %s: the model cannot be reached: %s", session.id, error)
            kind = PROVIDER_ERRORS[error.code]
            # In a session that is already open, the host would retry; this one will not be opened.
            advice = "Try again in a moment." if kind.recoverable else kind.suggestion
            raise SessionRefused(
                PROVIDER_UNAVAILABLE, f"{kind.message} {advice}", error.retry_after
            ) from None
        pinned = session.registry_version
        if session.repinned:
            self._notify_adopted(session, ())
        if pinned != self.runtime.registry.version:
            text = f"This conversation started with registry {pinned}, whose tools have since changed."
            changed = Notification(
                code="registry_changed", text=text, suggestion="It continues with the current tools."
            )
            session.publish(*event_fields(changed))
        await archive.note_session(self.runtime.store, session)
        await self.owners.add(live)
        self.live[session.id] = live
        live.start()
        self.spawn(self._watch_end(live))

    async def _watch_end(self, live: LiveSession) -> None:
        """Wait for a session to end, record its end, then remove it."""
        closing = await live.wait_closed()
        try:
            # Before it is removed: a client that asks in between would find it saved as active.
            if closing in (ENDED, MAX_DURATION):
                await self.runtime.end_session(live.session)
                await archive.delete_if_empty(self.runtime.store, live.session.id)
        finally:
            if self.live.get(live.session.id) is live:
                del self.live[live.session.id]
                await self.owners.remove(live)
        _log.info("session %s: %s", live.session.id, closing.reason)

    async def _take_request(self, token: str, identity: Identity) -> str | None:
        """Return the pending request of a text session; only one session gets it."""
        session, store = await self.load_session(token, identity, ended=True), self.runtime.store
        request = session.flags.get("pending_message")
        if not request:
            return None
        if session.id in self.live:
            session.set_flag("pending_message", None)
            await session.save(store)
            return str(request)
        # The session's owner still has the request, and writes it to the store again with its next save.
        digest = hashlib.sha256(request.encode()).hexdigest()
        times = await store.add(f"handover/{session.id}/{digest}", 1, window=RECOVERY_SECONDS)
        return str(request) if times == 1 else None

    async def _close_deleted(self) -> None:
        """Close sessions that are being deleted, without saving them."""
        for session_id in await archive.deleted(self.runtime.store) if self.live else ():
            live = self.live.get(session_id)
            if live is not None and live.closing is None:
                live.checkpoint.disable()
                self.spawn(live.close(UNKNOWN_SESSION))

    async def _close_banned(self) -> None:
        """Close the sessions of banned users, regardless of which host banned them.

        A session is closed at the second check that finds the ban, so that the model has time to say why. A
        session that is ending anyway may finish its last words.
        """
        list_bans = getattr(self.runtime.capabilities.get("bans"), "active", None)
        active = await list_bans() if list_bans is not None and self.live else {}
        banned = {subject.user or subject.session or "" for subject in active}
        for live in list(self.live.values()):
            known = {live.session.user or live.session.id} & self._banned & banned
            if known and live.closing is None and not live.ending:
                self.spawn(live.close(BANNED))
        self._banned = banned

    async def _prune(self) -> None:
        try:
            await self.runtime.store.prune()
        except StoreUnavailableError as error:
            _log.warning("expired entries could not be removed from the store: %s", error)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background until it is done or the host closes."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _drain(live: LiveSession, deadline: float) -> None:
    """Wait for a session's tools, then close it; the next owner continues unfinished calls."""
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            await live.wait_tools()
    except TimeoutError:
        _log.warning("session %s: a tool did not finish in time", live.session.id)
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await live.close(RESTARTING)
    except TimeoutError:
        await live.checkpoint.save(session=True)
        live.hub.close(RESTARTING)


async def _resolve_live(live: LiveSession, token: str, *, approve: bool) -> CallResult | None:
    answer = await live.resolve_confirmation(token, approve=approve)
    await live.hub.flush()
    return answer
