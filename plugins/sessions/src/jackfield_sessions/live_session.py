"""A live session: the one object that a socket, an HTTP stream, a terminal or a test talks to.

It connects a session of the kernel to a model and to any number of clients. It outlives a client's
connection, but not the session: another process can continue the session from its checkpoint.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from jackfield.call_states import state_of
from jackfield.contract.context import UNANSWERED, UserAnswer, UserQuestion
from jackfield.orchestrator import CallResult
from jackfield.protocol.close_codes import (
    ABANDONED,
    ENDED,
    IDLE,
    INTERNAL,
    MAX_DURATION,
    PROVIDER_UNAVAILABLE,
    REPLACED,
    CloseReason,
)
from jackfield.protocol.codec import event_fields
from jackfield.protocol.messages import ErrorMessage, FormClosed, PartialAnswer
from jackfield.runtime import Runtime
from jackfield.session.session import Session, State, Turn
from jackfield.store import StoreUnavailableError
from jackfield.transport.events import Closed
from jackfield.transport.protocol import ConnectionConfig, Transport, TransportError, VoiceSettings

from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.claim_check import ClaimChecking
from jackfield_sessions.completions import Completions
from jackfield_sessions.events import EventLog, answered_calls, open_forms, published_messages
from jackfield_sessions.forms import FormError, Submission, encode
from jackfield_sessions.hub import ClientQueue, EventHub
from jackfield_sessions.late_outcomes import UNKNOWN_CONFIRMATION, contradicts, decided_before
from jackfield_sessions.model_connection import base_config
from jackfield_sessions.model_loop import ModelLoop
from jackfield_sessions.options import SessionOptions
from jackfield_sessions.playback import PlaybackTracker
from jackfield_sessions.questions import Questions
from jackfield_sessions.summary import Summarizer
from jackfield_sessions.tool_runner import DEAD_AIR_SECONDS

if TYPE_CHECKING:
    from jackfield_sessions.session_factory import ClientLocale

_log = logging.getLogger(__name__)

RENEWAL_SECONDS = 60.0
"""How long a renewal waits for the model to be idle after the registry or the client's forms changed."""


class LiveSession:
    """Connects one session to its model and its clients."""

    def __init__(
        self,
        runtime: Runtime,
        session: Session,
        transport: Transport,
        *,
        instructions: str,
        checkpoint: Checkpoint | None = None,
        omitted_guides: Mapping[str, str] | None = None,
        answer_tokens: int = 0,
        voice: VoiceSettings | None = None,
        summarize: Summarizer | None = None,
        dead_air: float = DEAD_AIR_SECONDS,
        forms: bool = False,
        claim_checking: ClaimChecking = "correct",
    ) -> None:
        """`omitted_guides` are the guides that the instructions omit, by tool.

        `forms` says whether the client shows forms.
        """
        self.session = session
        self.checkpoint = checkpoint or Checkpoint(session, runtime.store)
        self.hub = EventHub(
            EventLog(session, runtime.store),
            on_message=self.checkpoint.mark_published,
            on_lost=lambda: self._spawn(self.release()),
        )
        session.publish = self.hub.publish
        self.provider_reason = ""
        """Why the provider was chosen."""
        self.left = time.monotonic()
        """When the last client detached."""
        self.closing: CloseReason | None = None
        """Why the session ends in this process, once that is decided."""
        self.request: str | None = None
        """A request from an earlier session; the model answers it once a client is attached."""
        self.on_end: Callable[[], Coroutine[Any, Any, None]] | None = None
        """Called when the session ends in this process."""
        self.locale: ClientLocale | None = None
        """The time zone and language of the client."""
        self.client_turn: Turn | None = None
        """The turn of the calls that the client makes itself."""
        self._runtime = runtime
        self._transport = transport
        self._voice = voice or VoiceSettings()
        self._answer_tokens = answer_tokens
        self._loop = ModelLoop(
            runtime,
            session,
            transport,
            self.hub,
            self.checkpoint,
            config=self._config(instructions),
            omitted_guides=omitted_guides or {},
            summarize=summarize,
            dead_air=dead_air,
            forms=forms,
            claim_checking=claim_checking,
        )
        self._client: ClientQueue | None = None
        self._questions = Questions(session, self.checkpoint.forms)
        session.ask_user = self._ask_user
        if "text" in transport.modes:
            session.ask_model = Completions(transport, self._loop.count_tokens).ask
        self._running: asyncio.Task[None] | None = None
        self._in_order = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def _config(self, instructions: str) -> ConnectionConfig:
        return base_config(
            self._runtime.registry,
            self.session,
            self._transport,
            instructions=instructions,
            voice=self._voice,
            answer_tokens=self._answer_tokens,
        )

    @property
    def transport(self) -> Transport:
        """The transport that connects the session to its model."""
        return self._transport

    async def adopt_registry(self, instructions: str, omitted_guides: Mapping[str, str]) -> None:
        """Switch to the registry that a development host has reloaded.

        The session is pinned to the new registry at once. The model learns what changed as soon as it is
        idle, and so before its next turn.
        """
        connection = self._loop.connection
        self._runtime.repin(self.session)
        self._loop.guides.replace(omitted_guides)
        if connection.reconfigure(self._config(instructions)) and not connection.broken:
            connection.schedule_renewal("registry", RENEWAL_SECONDS)
        await self.checkpoint.save(session=True)

    # From the first connection to the end.

    async def open(self) -> None:
        """Connect to the model; raises `TransportError` if that fails."""
        await self._loop.open()

    def start(self) -> None:
        """Handle the model's events from here on."""
        self._running = asyncio.create_task(self._run())

    async def recover(self) -> None:
        """Take over what another process has saved and published, before the model is connected."""
        published, checkpoint = (await self.hub.log.since(0)).messages, self.checkpoint
        pending = {call.call_id for batch in checkpoint.pending_calls for call in batch}
        # Only outcomes of pending calls: a provider may give a later call the id of an earlier one.
        checkpoint.published_outcomes = answered_calls(published) & pending
        closed = checkpoint.forms.reconcile(open_forms(published))
        await checkpoint.recover(published_messages(published))
        for form_id, submitted in closed.items():
            self.session.publish(*event_fields(FormClosed(form_id=form_id, submitted=submitted)))
        await self._loop.late_outcomes.restore()

    async def resume_pending_work(self) -> None:
        """Continue the work that another process left pending: calls, or an answer that is due."""
        loop = self._loop
        if loop.tools.resume():
            loop.transition(State.PROCESSING, busy=True)
            loop.transition(State.EXECUTING_TOOL)
        elif await loop.connection.retry_response():
            loop.transition(State.PROCESSING)
        elif self.checkpoint.correction:
            await loop.correct_answer()
        await loop.late_outcomes.resume()

    @property
    def ended(self) -> bool:
        """True if the session has ended in this process."""
        return self._running is not None and self._running.done()

    async def wait_closed(self) -> CloseReason:
        """Wait for the end and return the reason."""
        if self._running is not None:
            await asyncio.wait({self._running})
        return self.closing or ENDED

    async def wait_tools(self) -> None:
        """Wait until no tool is running."""
        await self._loop.tools.wait()

    async def close(self, closing: CloseReason = ENDED) -> None:
        """Close the connection to the model; running tools finish, and the session is saved."""
        self.closing = self.closing or closing
        loop = self._loop
        loop.end_timer.cancel()
        loop.late_outcomes.close()
        self._questions.close()
        await loop.connection.close()
        await loop.tools.wait(background=False)
        await self.wait_closed()

    async def release(self) -> None:
        """Close a session that another process owns, without saving it."""
        self.checkpoint.disable()
        await self.close(REPLACED)

    async def _run(self) -> None:
        """Run the model loop, then close the hub and its clients."""
        try:
            ended = await self._loop.run()
        except Exception:  # noqa: BLE001 - a failing session must not affect others
            _log.exception("session %s failed", self.session.id)
            ended, self.closing = Closed("server_error"), self.closing or INTERNAL
        # An intent ends the session for good; a lost model ends it in this process only.
        self.closing = self.closing or (PROVIDER_UNAVAILABLE if ended.code else ENDED)
        if self.closing in (ENDED, MAX_DURATION):
            await self._save_end()
            self._loop.publish_end()
        if self.on_end is not None:
            await self.on_end()
        await self.hub.flush()
        self.hub.close(self.closing)

    async def _save_end(self) -> None:
        """Save the end before any client learns of it, because a client may then ask another host."""
        self.session.transition(State.TERMINATED)
        try:
            await self.session.save(self._runtime.store)
        except StoreUnavailableError as error:
            # The host tries once more when it removes the session.
            _log.warning("the end of session %s could not be saved: %s", self.session.id, error)

    # Clients attach and detach.

    def attach(self, client: ClientQueue) -> None:
        """Attach a client; the previous client is closed as replaced."""
        if self._client is not None:
            self._client.close(REPLACED)
            self.hub.detach(self._client)
        self._client = client
        self.hub.attach(client)
        request, self.request = self.request, None
        if request:
            self._spawn(self._start_with(request), in_order=True)

    def detach(self, client: ClientQueue) -> None:
        """Detach a client; the session waits for it to reconnect."""
        self.hub.detach(client)
        if self._client is client:
            self._client = None
        self.left = time.monotonic()

    async def accept_forms(self, forms: bool) -> None:
        """Set whether the attached client shows forms.

        A provider connection learns this when it is opened, so a connection that supports forms is renewed.
        """
        connection = self._loop.connection
        if forms == connection.forms:
            return
        connection.forms = forms
        if not connection.broken and hasattr(await connection.current(), "send_form"):
            connection.schedule_renewal("forms", RENEWAL_SECONDS)
            await connection.wait_renewed()

    @property
    def tools_running(self) -> bool:
        """True while tools are running."""
        loop = self._loop
        return loop.late_outcomes.running or loop.connection.running_batches > 0 or loop.tools.in_background

    @property
    def ending(self) -> bool:
        """True while the model speaks its last words, or a tool that may end the session is running."""
        return self._loop.end_timer.ignores_input or self._loop.connection.running_batches > 0

    @property
    def is_abandoned(self) -> bool:
        """True if no client is attached and nothing is running that a user waits for."""
        return not (
            self.hub.has_clients or self.tools_running or self.checkpoint.response_pending or self._tasks
        )

    def close_due(self, options: SessionOptions, now: float) -> CloseReason | None:
        """Return why the session should be closed now; None if it should not."""
        if self._runtime.store.now() - self.session.opened_at > options.session_seconds:
            return MAX_DURATION
        if self.tools_running:
            return None
        if not self.hub.has_clients and now - self.left > options.grace_seconds:
            return ABANDONED
        return IDLE if now - self._loop.last_activity > options.idle_seconds else None

    @property
    def partial_answer(self) -> PartialAnswer | None:
        """Return the incomplete answer, for a client that attaches in the middle of it."""
        text = self._loop.speech.partial_answer
        return PartialAnswer(answer=self.checkpoint.answers + 1, text=text) if text else None

    @property
    def playback(self) -> PlaybackTracker:
        """Return how much speech was sent and played."""
        return self._loop.speech.playback

    # Requests from the user. Each method returns at once, so that a client's next message does not wait; the
    # task can be awaited. A failure is sent to the clients.

    def send_text(self, text: str, *, client_id: str | None = None) -> asyncio.Task[None]:
        """Send a text from the user; it interrupts the model.

        A client that does not know whether its text arrived sends it again with the same `client_id`; only
        the first one counts.
        """
        self._loop.last_activity = time.monotonic()
        return self._spawn(self._send_text(text, client_id), in_order=True)

    async def _send_text(self, text: str, client_id: str | None) -> None:
        """Begin a turn with the text, then send it to the model."""
        repeated = client_id is not None and client_id in self.checkpoint.client_ids
        if repeated or self._loop.end_timer.ignores_input:
            return
        await self._begin_user_turn(text, client_id)
        await (await self._loop.connection.current()).send_text(text)

    def submit_form(
        self, form_id: str, values: Mapping[str, Any], *, client_id: str | None = None
    ) -> asyncio.Task[None]:
        """Send a completed form, which begins a turn in which the model should call the form's tool.

        A form that is submitted again under the same `client_id` counts once. A form whose values do not fit
        the tool's schema stays open.
        """
        self._loop.last_activity = time.monotonic()
        return self._spawn(self._submit_form(form_id, values, client_id), in_order=True)

    async def _submit_form(self, form_id: str, values: Mapping[str, Any], client_id: str | None) -> None:
        checkpoint, forms = self.checkpoint, self.checkpoint.forms
        repeated = client_id is not None and client_id in checkpoint.client_ids
        if repeated or self._loop.end_timer.ignores_input:
            return
        if form_id in self._questions:
            self._questions.submit(form_id, values)
            if client_id is not None:
                checkpoint.client_ids.append(client_id)
            return
        tool_id = forms.tool_of(form_id)
        tool = self._runtime.registry.catalog(self.session.toolset).get(tool_id)
        if tool is None:
            gone = f"This form's tool, {tool_id}, is no longer available."
            raise FormError(form_id, "unknown_form", gone, "Dismiss the form.")
        submission = Submission(tool_id, encode(form_id, values, tool.arguments))
        forms.close(form_id, submitted=True)
        await self._begin_user_turn(submission.text, client_id, form_id, submission)
        closed = FormClosed(form_id=form_id, submitted=True, values=submission.values)
        self.session.publish(*event_fields(closed))
        await submission.send(await self._loop.connection.current())

    def dismiss_form(self, form_id: str) -> asyncio.Task[None]:
        """Close a form that the user does not want to complete."""
        return self._spawn(self._dismiss_form(form_id), in_order=True)

    async def _dismiss_form(self, form_id: str) -> None:
        if form_id in self._questions:
            self._questions.dismiss(form_id)
            return
        tool_id = self.checkpoint.forms.close(form_id, submitted=False)
        await self.checkpoint.save()
        self.session.publish(*event_fields(FormClosed(form_id=form_id, submitted=False)))
        send_form = getattr(await self._loop.connection.current(), "send_form", None)
        if send_form is not None:
            await send_form(tool_id, None)

    async def _ask_user(self, question: UserQuestion) -> UserAnswer:
        """Show the user a running call's question, if the attached client shows forms."""
        shows_forms = self._loop.connection.forms and self.session.mode == "text"
        if self._client is None or not shows_forms:
            return UNANSWERED
        return await self._questions.ask(question)

    def add_context(self, text: str, *, urgent: bool = False) -> asyncio.Task[None]:
        """Give the model context: at once if it is urgent, else when the model is idle."""
        return self._spawn(self._add_context(text, urgent=urgent), in_order=True)

    async def _add_context(self, text: str, *, urgent: bool) -> None:
        if urgent or self._loop.connection.idle.is_set():
            await self._loop.send_context(text, respond=False)
        else:
            self._loop.waiting_context.append(text)

    def interrupt(self) -> asyncio.Task[None]:
        """Interrupt the model; calls that only read are stopped, calls that write run to completion."""
        self.hub.drop_audio()
        return self._spawn(self._interrupt())

    async def _interrupt(self) -> None:
        loop, connection = self._loop, self._loop.connection
        loop.tools.stop()
        loop.speech.mute()
        answered = connection.running_batches or not self.checkpoint.response_pending
        if loop.speech.playback.has_unplayed and answered:
            # The answer is complete, but the client has not played all of it and will not play the rest.
            await loop.stop_playback()
        if connection.running_batches:
            # A model that waits for results is silent; the results make it continue.
            await loop.tools.stop_filler()
            return
        await (await connection.current()).interrupt()
        if self.session.mode == "voice" and self.session.state is State.PROCESSING:
            loop.transition(State.LISTENING)

    def submit_decision(self, token: str, *, approve: bool) -> asyncio.Task[None]:
        """Carry out the user's decision on a waiting call."""
        return self._spawn(self._submit_decision(token, approve=approve))

    async def _submit_decision(self, token: str, *, approve: bool) -> None:
        """Resolve a confirmation; tell the client if the token is unknown or the call was decided before."""
        answer = await self.resolve_confirmation(token, approve=approve)
        if answer is None:
            self._send_error(*UNKNOWN_CONFIRMATION)
            return
        state = state_of(answer.wire)
        if answer.replayed and contradicts(state, approve=approve):
            # An earlier decision, which differs from this one, remains valid.
            self._send_error("already_decided", decided_before(state), "Check the outcome of the call.")

    async def resolve_confirmation(self, token: str, *, approve: bool) -> CallResult | None:
        """Carry out the user's decision on a waiting call, and tell the model the outcome.

        Return the outcome, or None for a token that is unknown in this session.
        """
        return await self._loop.late_outcomes.resolve(token, approve=approve)

    def cancel_call(self, call_id: str) -> None:
        """Stop a call at the user's request, unless it writes."""
        self._loop.tools.stop("cancelled by the user", [call_id])

    async def send_audio(self, pcm: bytes) -> None:
        """Send the user's speech: PCM16, 24 kHz, mono."""
        if not self._loop.end_timer.ignores_input:
            await self._loop.connection.send_audio(pcm)

    def report_playback(self, item: str, ms: int) -> None:
        """Record how much of an item the client has played."""
        self._loop.speech.playback.report(item, ms)

    async def _start_with(self, request: str) -> None:
        """Have the model answer a request from an earlier session."""
        self.checkpoint.response_pending = True
        self.checkpoint.history.add("user", request)
        await self.checkpoint.save()
        self._loop.transition(State.PROCESSING, busy=True)
        text = (
            f"Before this call, the user asked in the chat: {request!r}. Deal with that in your first answer."
        )
        await self._loop.send_context(text, respond=True)

    async def _begin_user_turn(
        self,
        text: str,
        client_id: str | None,
        form_id: str | None = None,
        submission: Submission | None = None,
    ) -> None:
        """Interrupt a pending answer, begin a turn, and save and publish the user's message."""
        loop, checkpoint = self._loop, self.checkpoint
        await loop.connection.wait_renewed()
        if checkpoint.response_pending:
            loop.connection.supersede_response()
            await self._interrupt()
        elif self.session.mode == "voice" and loop.speech.playback.has_unplayed:
            await loop.stop_playback()
        checkpoint.response_pending = True
        # From here on a renewal would ask for the answer a second time.
        loop.connection.idle.clear()
        checkpoint.submission = submission
        await loop.begin_turn(text)
        await checkpoint.add_message("user", text, client_id=client_id, form_id=form_id, begins_turn=True)
        loop.transition(State.PROCESSING, busy=True)

    def _spawn(self, work: Coroutine[Any, Any, None], *, in_order: bool = False) -> asyncio.Task[None]:
        """Start a task for a client's request; `in_order` runs it after earlier requests."""
        task = asyncio.create_task(self._guarded(work, self._in_order if in_order else nullcontext()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(
        self, work: Coroutine[Any, Any, None], order: AbstractAsyncContextManager[Any]
    ) -> None:
        """Run a request; a failure is sent to the clients."""
        async with order:
            try:
                await work
            except FormError as error:
                self.hub.send_transient(error.to_message())
            except StoreUnavailableError:
                self._send_error(
                    "store_unavailable", "The session store is unavailable.", "Try again in a moment."
                )
            except TransportError as error:
                _log.warning("session %s: %s", self.session.id, error)
                self._send_error(
                    "provider_unavailable", "The model cannot be reached.", "Try again in a moment."
                )
            except Exception:  # noqa: BLE001
                _log.exception("session %s: a client's request failed", self.session.id)
                self._send_error("internal", "The host failed with an internal error.", "Try again.")

    def _send_error(self, code: str, text: str, suggestion: str) -> None:
        self.hub.send_transient(ErrorMessage(code=code, message=text, suggestion=suggestion))
