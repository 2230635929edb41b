"""Handles the model's events: delivers text and speech, runs tool calls, and recovers from errors."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

import orjson
from jackfield.protocol import messages
from jackfield.protocol.codec import encode, event_fields
from jackfield.runtime import Runtime
from jackfield.session.session import TRANSITIONS, Session, State
from jackfield.transport.events import (
    Audio,
    Closed,
    ConnectionExpiring,
    FormRequest,
    Interrupted,
    ProviderError,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCalls,
    ToolCallsCancelled,
    Transcript,
    TurnComplete,
    Usage,
)
from jackfield.transport.protocol import ConnectionConfig, Transport, TransportError

from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.claim_check import ClaimCheck, ClaimChecking
from jackfield_sessions.events import encoded
from jackfield_sessions.guides import OmittedGuides
from jackfield_sessions.hub import EventHub, Message
from jackfield_sessions.late_outcomes import LateOutcomes
from jackfield_sessions.model_connection import ModelConnection, Reconnected
from jackfield_sessions.notifications import provider_error
from jackfield_sessions.playback import SessionEndTimer, UtteranceBuffer
from jackfield_sessions.summary import Summarizer, extractive_summary, model_summarizer
from jackfield_sessions.tool_runner import DEAD_AIR_SECONDS, ToolRunner

_log = logging.getLogger(__name__)

_TURN_COMPLETE = encoded(messages.TurnComplete())


class ModelLoop:
    """Handles the events of a model until its connection ends for good."""

    def __init__(
        self,
        runtime: Runtime,
        session: Session,
        transport: Transport,
        hub: EventHub,
        checkpoint: Checkpoint,
        *,
        config: ConnectionConfig,
        omitted_guides: Mapping[str, str],
        summarize: Summarizer | None = None,
        dead_air: float = DEAD_AIR_SECONDS,
        forms: bool = False,
        claim_checking: ClaimChecking = "correct",
    ) -> None:
        """`config` is common to all connections; `omitted_guides` are not in its instructions."""
        self.tokens = 0
        """The tokens that the provider has counted so far, input and output."""
        self.last_activity = time.monotonic()
        """When either side was last active."""
        self.waiting_context: list[str] = []
        """Context for the model's next idle moment."""
        self._runtime = runtime
        self._session = session
        self._hub = hub
        self._checkpoint = checkpoint
        # When the session began, by this process's clock: its age is sent with every change of state.
        self._began = time.monotonic() - (runtime.store.now() - session.opened_at)
        self._delta_answer = 0
        self._delta_characters = 0
        if summarize is None:
            summarize = model_summarizer(transport) if "text" in transport.modes else extractive_summary
        self.connection = ModelConnection(
            transport,
            config,
            checkpoint,
            summarize=summarize,
            notify=self._notify_provider_error,
            forms=forms,
        )
        self._claims = ClaimCheck(runtime, session, checkpoint, claim_checking)
        self._correction: asyncio.Task[None] | None = None
        self._correction_sent = False
        self.speech = UtteranceBuffer(session, checkpoint, self._claims.find)
        self.end_timer = SessionEndTimer(session, self.speech.playback, self.connection.close)
        self.guides = guides = OmittedGuides(omitted_guides, self.connection)
        self.late_outcomes = LateOutcomes(runtime, session, checkpoint, guides, self._send_late_context)
        self.tools = ToolRunner(
            runtime.orchestrator,
            session,
            checkpoint,
            self.connection,
            late_outcomes=self.late_outcomes,
            guides=guides,
            playback=self.speech.playback,
            end_timer=self.end_timer,
            end_turn=self._end_turn,
            listening=hub.listening,
            dead_air=dead_air,
        )
        self._handlers: dict[type, Callable[..., Awaitable[None]]] = {
            TextDelta: self._on_text,
            Audio: self._on_audio,
            Transcript: self._on_transcript,
            ToolCalls: self._on_calls,
            FormRequest: self._on_form,
            ToolCallsCancelled: self._on_calls_cancelled,
            SpeechStarted: self._on_speech_started,
            SpeechStopped: self._on_speech_stopped,
            TurnComplete: self._end_turn,
            Interrupted: self._on_interrupted,
            ConnectionExpiring: self._on_going_away,
            ProviderError: self._on_error,
            Reconnected: self._on_reconnected,
            Usage: self.count_tokens,
        }

    async def open(self) -> None:
        """Connect to the model; raises `TransportError` if that fails."""
        await self.connection.open()
        self.transition(State.READY)

    async def run(self) -> Closed:
        """Handle events until the connection ends for good; return how it ended."""
        ended = Closed()
        async for event in self.connection.events():
            if isinstance(event, Closed):
                ended = event
            elif (handle := self._handlers.get(type(event))) is not None:
                await handle(event)
        if ended.code:
            await self._notify_provider_error(ended.code)
        self.end_timer.cancel()
        self.late_outcomes.close()
        if self._correction is not None:
            self._correction.cancel()
        await self.tools.wait(background=False)
        await self._checkpoint.save(session=True)
        if self.tools.in_background:
            # The process that resumes the session finds these calls pending, and saves its own checkpoint.
            self._checkpoint.disable()
        return ended

    def transition(self, state: State, *, busy: bool = False) -> None:
        """Change the session's state and publish it; if the provider skipped a state in between, insert it.

        With `busy`, the model is no longer idle.
        """
        session = self._session
        if busy:
            self.connection.idle.clear()
        if session.state is state:
            return
        age = round(max(0.0, time.monotonic() - self._began), 3)
        direct = state in TRANSITIONS[session.state]
        for step in (state,) if direct else (State.PROCESSING, state):
            if session.state is not step and session.transition(step):
                status = messages.SessionStatus(
                    state=step.value,
                    active=True,
                    tokens_used=self.tokens,
                    age_seconds=age,
                )
                session.publish(*event_fields(status))

    def publish_end(self) -> None:
        """Publish that the session has ended; the end itself has been saved."""
        status = messages.SessionStatus(
            state=State.TERMINATED.value,
            active=False,
            tokens_used=self.tokens,
            age_seconds=round(max(0.0, time.monotonic() - self._began), 3),
        )
        self._session.publish(*event_fields(status))

    async def begin_turn(self, text: str = "") -> None:
        """Begin a user turn; the caller saves the session with the checkpoint."""
        correction, self._checkpoint.correction = self._checkpoint.correction, ""
        self._session.begin_turn(text)
        self._runtime.orchestrator.observers.turn_began(self._session)
        if correction and not self._correction_sent:
            # The user spoke first: the model learns of the correction, and answers the user.
            await self.send_context(correction, respond=False)

    async def stop_playback(self) -> None:
        """Stop speech that the model has finished and the client is still playing."""
        self.speech.mute()
        await self._truncate_answer()
        self._send_speech_end(messages.Interrupted())

    async def send_context(self, text: str, *, respond: bool) -> None:
        """Send context to the model; with `respond`, the model answers."""
        await (await self.connection.current()).send_context(text, respond=respond)

    # The events of the model.

    async def _on_text(self, event: TextDelta) -> None:
        """Send a piece of the answer to the clients."""
        visible = self.speech.add_text(event.text)
        self.transition(State.SPEAKING, busy=True)
        if not visible:
            return
        answer = self._checkpoint.answers + 1
        if answer != self._delta_answer:
            self._delta_answer, self._delta_characters = answer, 0
        at, self._delta_characters = self._delta_characters, self._delta_characters + len(event.text)
        self._send(encode_text_delta(answer=answer, offset=at, text=event.text))

    async def _on_audio(self, event: Audio) -> None:
        """Send a piece of speech to the clients, unless it is suppressed."""
        suppressed = self.speech.is_suppressed(event)
        if not suppressed:
            self.speech.add_audio(event)
        # A filler does not change what the session waits for.
        if self._session.state is not State.SPEAKING and not event.filler:
            self.transition(State.SPEAKING, busy=True)
        if not suppressed:
            self.last_activity = time.monotonic()
            self._hub.send_audio(event.item, event.pcm)

    async def _on_transcript(self, event: Transcript) -> None:
        """Collect the transcript of either side and send it to the clients."""
        await self.speech.add_transcript(event)
        if not self.speech.is_suppressed(event):
            self._send(messages.Transcript(**event._asdict()))

    async def _on_calls(self, event: ToolCalls) -> None:
        """Start the tool calls of a model message."""
        self.transition(State.EXECUTING_TOOL, busy=True)
        await self.tools.start(event.calls)

    async def _on_form(self, event: FormRequest) -> None:
        """Save and publish a form that the model wants completed."""
        session = self._session
        tool = self._runtime.registry.catalog(session.toolset).get(event.tool_id)
        if tool is None or session.mode not in tool.manifest.allowed_modes:
            _log.error(
                "session %s: the transport requested a form for %r, which is not a tool of this session",
                session.id,
                event.tool_id,
            )
            return
        # Text before the form is published before it, also for clients that attach later.
        await self._finish_answer()
        replaced = self._checkpoint.forms.add(event.form_id, tool.id)
        await self._checkpoint.save()
        for form_id in replaced:
            session.publish(*event_fields(messages.FormClosed(form_id=form_id, submitted=False)))
        form = messages.FormRequest(
            form_id=event.form_id,
            tool=tool.id,
            values=dict(event.values),
            description=tool.frozen.summary,
            parameters=dict(tool.manifest.parameters),
        )
        session.publish(*event_fields(form))

    async def _on_calls_cancelled(self, event: ToolCallsCancelled) -> None:
        """Stop calls that the model has withdrawn."""
        self.tools.stop("cancelled by the model", event.call_ids)

    async def _on_speech_started(self, _: SpeechStarted) -> None:
        """Stop playback and tools, and begin a turn: the user is speaking."""
        # Before anything is saved: playback must stop as soon as the user speaks.
        self.speech.mute()
        self._send_speech_end(messages.SpeechStarted())
        self.tools.stop()
        # Speech is sent faster than it is played: the model may be done while the client still plays.
        if self.speech.playback.has_unplayed:
            await self._truncate_answer()
        await self.begin_turn()
        await self._checkpoint.save(session=True)
        self.transition(State.LISTENING, busy=True)

    async def _on_speech_stopped(self, _: SpeechStopped) -> None:
        """Record that the user is waiting for an answer."""
        self._checkpoint.response_pending = True
        self.transition(State.PROCESSING, busy=True)
        self._send(messages.SpeechStopped())

    async def _on_interrupted(self, _: Interrupted) -> None:
        """Keep the part of the answer that was played, and tell the clients."""
        voice = self._session.mode == "voice"
        if voice:
            self.speech.mute()
            self._send_speech_end(messages.Interrupted())
        complete = self.connection.complete_response()
        await self._truncate_answer()
        self.end_timer.turn_ended.set()
        # The user may have asked something else while the answer was being saved.
        if complete and not self._checkpoint.response_pending:
            if not voice:
                self.transition(State.READY)
            elif self._session.state is State.SPEAKING:
                self.transition(State.LISTENING)
        if not voice:
            self._send(messages.Interrupted())

    async def _on_going_away(self, event: ConnectionExpiring) -> None:
        """Renew the connection before the provider closes it."""
        self.connection.schedule_renewal("going_away", event.seconds)

    async def count_tokens(self, used: Usage) -> None:
        """Count the tokens that the provider reports for an answer."""
        self.tokens += used.input_tokens + used.output_tokens

    async def _on_error(self, event: ProviderError) -> None:
        """Notify the clients of a provider error, and recover from it if possible."""
        _log.warning("session %s: %s %s", self._session.id, event.code, event.detail)
        broken = self.connection.broken
        goes_on = broken or self.connection.recover(event)
        self._notify(provider_error(event.code, given_up=not goes_on))
        if broken:
            # The user said this, although the provider did not finish the transcript.
            if await self.speech.flush_partial():
                self._checkpoint.response_pending = True
            self.transition(State.RECONNECTING)
            await self.connection.on_disconnect(event)
        elif not goes_on and self._session.state is not State.SPEAKING:
            await self._end_turn()

    async def _on_reconnected(self, _: Reconnected) -> None:
        """Ask the new connection for the answer that is due."""
        self.transition(State.READY)
        if await self.connection.retry_response():
            self.transition(State.PROCESSING)

    # Shared by the handlers.

    async def _end_turn(self, _: TurnComplete | None = None) -> None:
        """End the model's turn: save and publish the answer, then send `turn_complete`."""
        # First, so that it is saved together with the answer.
        complete = not self.connection.running_batches and self.connection.complete_response()
        await self._finish_answer(last=complete)
        if complete:
            if self._checkpoint.correction and self._session.mode == "text":
                # The turn continues until the model has corrected itself.
                await self.correct_answer()
                return
            self.end_timer.turn_ended.set()
            # The user may have asked something else while the answer was being saved.
            if not self._checkpoint.response_pending:
                self.transition(State.LISTENING if self._session.mode == "voice" else State.READY)
            while self.waiting_context:
                await self.send_context(self.waiting_context.pop(0), respond=False)
            if self._checkpoint.correction:
                self._correction = asyncio.create_task(self._correct_when_played())
        self._send(_TURN_COMPLETE)

    async def _finish_answer(self, *, last: bool = False) -> None:
        """Save and publish the answer; with `last`, a correction is due if the answer has unbacked claims."""
        answer = self.speech.take_answer()
        claims = self._claims.find(answer)
        if last:
            # Saved together with the answer, so that another process can ask for the correction.
            self._checkpoint.correction = self._claims.correction(claims) if claims else ""
            self._correction_sent = False
        await self._checkpoint.add_message("assistant", answer, unbacked_claims=claims)
        if claims:
            self._claims.report(claims)

    async def correct_answer(self) -> None:
        """Tell the model about the unbacked claims in its last answer, so that it corrects itself."""
        self._correction_sent = True
        self._checkpoint.response_pending = True
        self.transition(State.PROCESSING, busy=True)
        await self.send_context(self._checkpoint.correction, respond=True)

    async def _correct_when_played(self) -> None:
        """Have the model correct itself once the user has heard its answer."""
        correction = self._checkpoint.correction
        await self.speech.playback.wait_played()
        # The user may have said something meanwhile.
        if self._checkpoint.correction is correction and not self._checkpoint.response_pending:
            try:
                await self.correct_answer()
            except TransportError as error:
                _log.warning("session %s: %s", self._session.id, error)

    async def _truncate_answer(self) -> None:
        """Cut the answer to the part that was played, here and at the provider."""
        point, claims = await self.speech.truncate()
        if point:
            await (await self.connection.current()).truncate(point.item, point.played_ms)
        if not claims:
            return
        self._claims.report(claims)
        # The user is not waiting for a correction of an answer that was cut off.
        if correction := self._claims.correction(claims):
            await self.send_context(correction, respond=False)

    async def _send_late_context(self, text: str) -> None:
        """Send a late outcome to the model, which answers it."""
        self._checkpoint.response_pending = True
        await self._checkpoint.save()
        await self.send_context(text, respond=True)

    def _send(self, message: messages.HostMessage | Message | str) -> None:
        """Send the clients a message that is not stored."""
        self.last_activity = time.monotonic()
        self._hub.send_transient(message)

    def _send_speech_end(self, message: messages.HostMessage) -> None:
        """Drop unsent speech and tell the clients at once to stop playing."""
        self.last_activity = time.monotonic()
        self._hub.drop_audio()
        self._hub.send_transient(message, at_once=True)

    def _notify(self, notification: messages.Notification) -> None:
        self._session.publish(*event_fields(notification))

    async def _notify_provider_error(self, code: str) -> None:
        self._notify(provider_error(code))


def encode_text_delta(*, answer: int, offset: int, text: str) -> str:
    """Return `encode(messages.TextDelta(...))` as text, without an object for each piece of an answer."""
    try:
        quoted = orjson.dumps(text).decode()
    except TypeError:
        return encode(messages.TextDelta(answer=answer, offset=offset, text=text)).decode()
    return f'{{"type":"text_delta","answer":{answer},"offset":{offset},"text":{quoted}}}'
