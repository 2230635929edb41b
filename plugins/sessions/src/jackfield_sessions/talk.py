"""One session in conversation: the model behind it, its clients in front, and what it tells them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from jackfield.outcomes import CallState, state_of
from jackfield.protocol.close_codes import (
    ENDED,
    FAILED,
    FORSAKEN,
    IDLE,
    PROVIDER,
    REPLACED,
    TOO_LONG,
    Closing,
)
from jackfield.session.machine import State
from jackfield.session.session import Session
from jackfield.session.turn import Turn
from jackfield.store import StoreUnavailableError
from jackfield.transport.events import (
    Audio,
    Closed,
    Event,
    Interrupted,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    Transcript,
    TurnComplete,
)
from jackfield.transport.protocol import TransportError

from jackfield_sessions.conversation import Conversation
from jackfield_sessions.events import answered, open_forms, said
from jackfield_sessions.feed import Feed
from jackfield_sessions.forms import FormError, closed_event
from jackfield_sessions.notices import Notice
from jackfield_sessions.options import SessionOptions
from jackfield_sessions.outlet import Outlet

_log = logging.getLogger(__name__)

_PASSING: dict[type, str] = {
    SpeechStarted: "speech_started",
    SpeechStopped: "speech_stopped",
    TurnComplete: "turn_complete",
    Interrupted: "interrupted",
}
"""Events that say all they have to by their name."""


UNKNOWN_CONFIRMATION = (
    "unknown_confirmation",
    "This session has no such confirmation, or it is older than 24 hours.",
    "Look at the session's events for what became of the call.",
)
"""The error for a token that stands for nothing: code, sentence, suggestion."""


def decides_otherwise(state: CallState, *, approve: bool) -> bool:
    """Whether a decision contradicts the one that stands."""
    return approve is (state in (CallState.DECLINED, CallState.EXPIRED))


def decided_before(state: CallState) -> str:
    """Why a decision did not count."""
    match state:
        case CallState.DECLINED:
            return "The user declined this call before; it was not run."
        case CallState.EXPIRED:
            return "The confirmation expired before a decision arrived; the call was not run."
        case CallState.IN_DOUBT:
            return "The user approved this call before; it may or may not have taken effect."
        case CallState.RUNNING:
            return "The user approved this call before; it is running."
        case CallState.UNKNOWN:
            return "The session store is unavailable, so what became of this call is not known now."
    return "The user approved this call before; it has its outcome."


class Talk:
    """Joins a conversation to its feed; lives longer than a connection, and shorter than a session."""

    def __init__(self, session: Session, feed: Feed, clock: Callable[[], float]) -> None:
        """`clock` is the store's, by which the session's age is told."""
        self.session = session
        self.feed = feed
        self.conversation: Conversation
        self._clock = clock
        self.provider_reason = ""
        """Why its provider was chosen, and how it answers this session."""
        self.last_said = time.monotonic()
        """When either side last said something."""
        self.left = time.monotonic()
        """When the last client went."""
        self.closing: Closing | None = None
        """Why it is carried no further here, once that is decided."""
        self.request: str | None = None
        """What the user wanted before it began, to be taken up as soon as somebody listens."""
        self.on_end: Callable[[], Coroutine[Any, Any, None]] | None = None
        """What else has to be hung up when it ends."""
        self.client_turn: Turn | None = None
        """The turn of the calls that the client makes itself."""
        self._line: Outlet | None = None
        self._carrying: asyncio.Task[None] | None = None
        self._answer = 0
        self._written = 0
        self._order = asyncio.Lock()
        self._errands: set[asyncio.Task[None]] = set()

    def publish(self, event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        """What the session tells; statuses say how it stands as a whole."""
        if event == "session_status":
            age = round(max(0.0, self._clock() - self.session.began), 3)
            tokens = self.conversation.tokens
            fields = {**fields, "active": self.session.active, "tokensUsed": tokens, "ageSeconds": age}
        self.feed.publish(event, fields, once=once)

    async def deliver(self, event: Event | Notice) -> None:
        """What the model does, for the clients."""
        if isinstance(event, Audio):
            self.last_said = time.monotonic()
            self.feed.play(event.item, event.pcm)
            return
        hushes = self.session.mode == "voice" and isinstance(event, SpeechStarted | Interrupted)
        if hushes:
            self.feed.hush()
        message = self._message(event)
        if message is not None:
            self.last_said = time.monotonic()
            self.feed.pass_on(message, at_once=hushes)
        elif isinstance(event, Notice):
            self.feed.publish("notification", event._asdict())

    def _message(self, event: Event | Notice) -> dict[str, Any] | None:
        if isinstance(event, TextDelta):
            answer = self.conversation.journal.answers + 1
            if answer != self._answer:
                self._answer, self._written = answer, 0
            at, self._written = self._written, self._written + len(event.text)
            return {"type": "text_delta", "answer": answer, "atCharacter": at, "text": event.text}
        if isinstance(event, Transcript):
            return {"type": "transcript", **event._asdict()}
        name = _PASSING.get(type(event))
        return {"type": name} if name else None

    async def take_up(self) -> None:
        """Go on in place of another host, from what it has kept and told."""
        told, journal = (await self.feed.events.since(0)).messages, self.conversation.journal
        under_way = {call.call_id for message in journal.under_way for call in message}
        # Only of those that were: a provider may give a later call the id of an earlier one.
        journal.told = answered(told) & under_way
        closed = journal.forms.reconcile(open_forms(told))
        await journal.take_up(said(told))
        for form_id, submitted in closed.items():
            self.publish("form_closed", closed_event(form_id, submitted=submitted))
        await self.conversation.restore()

    def carry(self) -> None:
        """Carry the model's events from here on."""
        self._carrying = asyncio.create_task(self._carry())

    @property
    def ended(self) -> bool:
        """Whether the conversation here has come to its end."""
        return self._carrying is not None and self._carrying.done()

    async def over(self) -> Closing:
        """Wait for the end of the conversation here; why it ended."""
        if self._carrying is not None:
            await asyncio.wait({self._carrying})
        return self.closing or ENDED

    async def _carry(self) -> None:
        try:
            ended = await self.conversation.run()
        except Exception:  # noqa: BLE001 - one conversation that fails is one conversation
            _log.exception("the conversation of session %s failed", self.session.id)
            ended, self.closing = Closed("server_error"), self.closing or FAILED
        # An intent that was honoured ends the session; a model that was lost only this part of it.
        self.closing = self.closing or (PROVIDER if ended.code else ENDED)
        if self.closing in (ENDED, TOO_LONG) and self.session.go(State.TERMINATED):
            self.publish("session_status", {"state": State.TERMINATED.value})
        if self.on_end is not None:
            await self.on_end()
        await self.feed.flush()
        self.feed.close(self.closing)

    # What the user does; each of these returns at once, so that a client can be heard while they last.

    def say(self, text: str, *, mark: str | None = None) -> None:
        """The user writes; what comes again under the same mark is said once."""
        self.last_said = time.monotonic()
        self._do(self.conversation.say(text, mark=mark), in_order=True)

    def submit_form(self, form_id: str, values: Mapping[str, Any], *, mark: str | None = None) -> None:
        """The user completed a form; what comes again under the same mark counts once."""
        self.last_said = time.monotonic()
        self._do(self.conversation.submit_form(form_id, values, mark=mark), in_order=True)

    def dismiss_form(self, form_id: str) -> None:
        """The user does not want to complete a form."""
        self._do(self.conversation.dismiss_form(form_id), in_order=True)

    def note(self, text: str, *, urgent: bool) -> None:
        """Something the model should know."""
        self._do(self.conversation.note(text, urgent=urgent), in_order=True)

    def interrupt(self) -> None:
        """The user wants the assistant to stop."""
        self.feed.hush()
        self._do(self.conversation.interrupt())

    def decide(self, token: str, *, approve: bool) -> None:
        """The user's word on a call that waits for it."""
        self._do(self._decide(token, approve=approve))

    async def _decide(self, token: str, *, approve: bool) -> None:
        answer = await self.conversation.resolve_confirmation(token, approve=approve)
        if answer is None:
            self._complain(*UNKNOWN_CONFIRMATION)
            return
        state = state_of(answer.wire)
        if answer.replayed and decides_otherwise(state, approve=approve):
            # The client asked for something else than what was decided before.
            self._complain("already_decided", decided_before(state), "Look at the call's outcome.")

    def _do(self, work: Coroutine[Any, Any, Any], *, in_order: bool = False) -> None:
        task = asyncio.create_task(self._done(work, self._order if in_order else nullcontext()))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _done(self, work: Coroutine[Any, Any, Any], order: AbstractAsyncContextManager[Any]) -> None:
        async with order:
            try:
                await work
            except FormError as error:
                faults = {"faults": list(error.faults)} if error.faults else {}
                self._complain(error.code, error.message, error.suggestion, formId=error.form_id, **faults)
            except StoreUnavailableError:
                self._complain(
                    "store_unavailable", "The host cannot remember anything now.", "Try again soon."
                )
            except TransportError as error:
                _log.warning("session %s: %s", self.session.id, error)
                self._complain("provider_unavailable", "The model cannot be reached.", "Try again soon.")
            except Exception:  # noqa: BLE001
                _log.exception("session %s: what its client asked for failed", self.session.id)
                self._complain("internal", "The host failed at that.", "Try again.")

    def _complain(self, code: str, text: str, suggestion: str, **more: Any) -> None:
        told = {"type": "error", "code": code, "message": text, "suggestion": suggestion, **more}
        self.feed.pass_on(told)

    def join(self, outlet: Outlet) -> None:
        """A client takes the line; one that held it before is told to let go."""
        if self._line is not None:
            self._line.close(REPLACED)
            self.feed.detach(self._line)
        self._line = outlet
        self.feed.attach(outlet)
        request, self.request = self.request, None
        if request:
            self._do(self.conversation.begin_with(request), in_order=True)

    def leave(self, outlet: Outlet) -> None:
        """A client is gone; the conversation waits for it to come back."""
        self.feed.detach(outlet)
        if self._line is outlet:
            self._line = None
        self.left = time.monotonic()

    @property
    def forsaken(self) -> bool:
        """Whether nobody listens, and nothing is under way that somebody waits for."""
        conversation = self.conversation
        return not (self.feed.heard or conversation.busy or conversation.journal.owed or self._errands)

    def due(self, options: SessionOptions, now: float) -> Closing | None:
        """Why it should be let go of, if its time is over."""
        if self._clock() - self.session.began > options.session_seconds:
            return TOO_LONG
        if self.conversation.busy:
            return None
        if not self.feed.heard and now - self.left > options.grace_seconds:
            return FORSAKEN
        return IDLE if now - self.last_said > options.idle_seconds else None

    @property
    def partial(self) -> dict[str, Any] | None:
        """The answer that is being given, for a client that was not there when it began."""
        writing = self.conversation.writing
        return {"answer": self.conversation.journal.answers + 1, "text": writing} if writing else None

    async def stop(self, closing: Closing) -> None:
        """Hang up at the model; running tools still come to their end, and what was said is kept."""
        self.closing = self.closing or closing
        await self.conversation.close()
        await self.over()

    async def drop(self) -> None:
        """Let go of a session that another host carries on: nothing of this one's may be kept."""
        self.conversation.journal.abandon()
        await self.stop(REPLACED)
