"""The model's side of a conversation: its events reach the client, its calls are run, its line is kept up."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from jackfield.orchestrator import Answer
from jackfield.runtime import Runtime
from jackfield.session.machine import State
from jackfield.session.session import Session
from jackfield.store import StoreUnavailableError
from jackfield.transport.events import (
    Audio,
    Closed,
    Event,
    FormRequest,
    GoingAway,
    Interrupted,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCalls,
    ToolCallsCancelled,
    Transcript,
    Trouble,
    TurnComplete,
    Usage,
)
from jackfield.transport.protocol import Transport, TransportError, VoiceSettings

from jackfield_sessions.calls import DEAD_AIR_SECONDS, Calls
from jackfield_sessions.continuity import Continuity
from jackfield_sessions.course import Course
from jackfield_sessions.farewell import Farewell
from jackfield_sessions.floor import Floor
from jackfield_sessions.forms import closed_event
from jackfield_sessions.guides import OmittedGuides
from jackfield_sessions.journal import Journal
from jackfield_sessions.late_outcomes import LateOutcomes
from jackfield_sessions.ledger import Ledger
from jackfield_sessions.line import Restored
from jackfield_sessions.memory import Memory, Summarise, digest
from jackfield_sessions.notices import Notice, of_trouble
from jackfield_sessions.opening import Openings
from jackfield_sessions.summary import by_model

_log = logging.getLogger(__name__)


Deliver = Callable[[Event | Notice], Awaitable[None]]
"""Hands an event to the user's client."""


class Answering:
    """Carries what a model does to the client until the line ends for good."""

    def __init__(
        self,
        runtime: Runtime,
        session: Session,
        transport: Transport,
        deliver: Deliver,
        *,
        instructions: str,
        omitted_guides: Mapping[str, str] | None = None,
        answer_tokens: int = 0,
        journal: Journal | None = None,
        summarise: Summarise | None = None,
        voice: VoiceSettings | None = None,
        dead_air: float = DEAD_AIR_SECONDS,
        forms: bool = False,
    ) -> None:
        """`omitted_guides` are those that the instructions left out, by tool.

        `forms` says whether the client can show forms.
        """
        self.session = session
        self.journal = journal or Journal(session, runtime.store)
        self.tokens = 0
        """What the provider has counted so far, in and out."""
        self._floor = Floor(session, self.journal)
        self._farewell = Farewell(session, self.ledger, self._hang_up)
        self._runtime = runtime
        self._transport = transport
        self._deliver = deliver
        self._course = Course(session)
        self._openings = Openings(
            runtime.registry,
            session,
            transport,
            self.memory,
            instructions=instructions,
            voice=voice or VoiceSettings(),
            answer_tokens=answer_tokens,
            forms=forms,
        )
        self._summarise = summarise or (by_model(transport) if "text" in transport.modes else digest)
        self._dead_air = dead_air
        self._omitted_guides = OmittedGuides(omitted_guides or {})
        self._reached: tuple[Continuity, Calls] | None = None
        self._waiting_notes: list[str] = []
        self._superseded = 0
        self._late = LateOutcomes(runtime, session, self.journal, self._tell_late, encode=self._encode)
        self._on: dict[type, Callable[..., Awaitable[None]]] = {
            TextDelta: self._on_text,
            Audio: self._on_audio,
            Transcript: self._on_transcript,
            ToolCalls: self._on_calls,
            FormRequest: self._on_form,
            ToolCallsCancelled: self._on_cancelled,
            SpeechStarted: self._on_speech,
            SpeechStopped: self._on_silence,
            TurnComplete: self._on_turn_complete,
            Interrupted: self._on_interrupted,
            GoingAway: self._on_going_away,
            Trouble: self._on_trouble,
            Restored: self._on_restored,
            Usage: self._on_usage,
        }

    @property
    def memory(self) -> Memory:
        """What was said, as a model that takes over is told."""
        return self.journal.memory

    @property
    def ledger(self) -> Ledger:
        """What was spoken, and how much of it was heard."""
        return self._floor.ledger

    @property
    def writing(self) -> str:
        """The part of an answer that has come so far, as far as a client may know it."""
        return self._floor.writing

    async def open(self) -> None:
        """Reach the model; `TransportError` when it cannot be reached."""
        continuity = await Continuity.begin(
            self._transport, self._openings, self.journal, self._summarise, self._notice
        )
        calls = Calls(
            self._runtime.orchestrator,
            self.session,
            self.journal,
            continuity,
            deliver=self._deliver,
            answered=self._farewell.prepare,
            stopped=self._end_turn,
            watch=self._late.watch,
            plays=lambda: self.ledger.unheard,
            encode=self._encode,
            dead_air=self._dead_air,
        )
        self._reached = continuity, calls
        self._course.go(State.READY)

    async def run(self) -> Closed:
        """Carry events until the line ends for good; what ended it."""
        ended = Closed()
        async for event in self._held.line.events():
            told = False
            if self.session.mode == "voice" and isinstance(event, SpeechStarted | Interrupted):
                # Whoever speaks must not hear the rest while it is written down that he does.
                self._floor.silence()
                await self._deliver(event)
                told = True
            handle = self._on.get(type(event))
            if handle is not None:
                await handle(event)
            if isinstance(event, Closed):
                ended = event
            if not (told or isinstance(event, Restored) or self._floor.hides(event)):
                await self._deliver(event)
        if ended.code:
            await self._notice(ended.code)
        self._farewell.cancel()
        self._late.close()
        await self._calls.settle(beside=False)
        await self.journal.keep(counters=True)
        if self._calls.beside:
            # Whoever takes the conversation up finds these calls under way, and keeps the journal then.
            self.journal.abandon()
        return ended

    async def _on_text(self, event: TextDelta) -> None:
        self._floor.write(event.text)
        self._busy(State.SPEAKING)

    async def _on_audio(self, event: Audio) -> None:
        if not self._floor.hides(event):
            self._floor.speak(event)
        # A filler changes nothing about what is being waited for.
        if self.session.state is not State.SPEAKING and not event.filler:
            self._busy(State.SPEAKING)

    async def _on_transcript(self, event: Transcript) -> None:
        await self._floor.transcribe(event)

    async def _on_calls(self, event: ToolCalls) -> None:
        self._busy(State.EXECUTING_TOOL)
        await self._calls.start(event.calls)

    async def _on_form(self, event: FormRequest) -> None:
        tool = self._runtime.registry.get(event.tool_id)
        if tool is None or self.session.mode not in tool.manifest.allowed_modes:
            _log.error("session %s: the transport asks for the form of %r", self.session.id, event.tool_id)
            return
        # What was said before the form stands before it, for clients that come later, too.
        await self._floor.finish()
        replaced = self.journal.forms.add(event.form_id, tool.id)
        await self.journal.keep()
        for form_id in replaced:
            self.session.publish("form_closed", closed_event(form_id, submitted=False))
        self.session.publish(
            "form_request",
            {
                "formId": event.form_id,
                "toolId": tool.id,
                "values": dict(event.values),
                "description": tool.frozen.summary,
                "parameters": dict(tool.manifest.parameters),
            },
        )

    async def _on_cancelled(self, event: ToolCallsCancelled) -> None:
        self._calls.stop("cancelled by the model", event.call_ids)

    async def _on_speech(self, _: SpeechStarted) -> None:
        self._calls.stop()
        # Speech is sent faster than it plays: the model may be done while the user still listens.
        if self.ledger.unheard:
            await self._cut_short()
        await self._begin_turn()
        self._busy(State.LISTENING)

    async def _on_silence(self, _: SpeechStopped) -> None:
        self._held.owed = True
        self._busy(State.PROCESSING)

    async def _on_interrupted(self, _: Interrupted) -> None:
        over = self._given()
        await self._cut_short()
        self._farewell.turn_over()
        if not over:
            return
        await self.journal.settled()
        if self.session.mode == "text":
            self._rest(State.READY)
        elif self.session.state is State.SPEAKING:
            self._rest(State.LISTENING)

    async def _on_turn_complete(self, _: TurnComplete) -> None:
        over = not self._held.working and self._given()
        await self._floor.finish()
        if not over:
            return
        self._farewell.turn_over()
        await self.journal.settled()
        self._rest(State.LISTENING if self.session.mode == "voice" else State.READY)
        while self._waiting_notes:
            await self._tell_model(self._waiting_notes.pop(0), respond=False)

    def _given(self) -> bool:
        """Whether nothing more is owed, of which a note is made before the answer is kept and told."""
        if self._superseded:
            # It was stopped, or done before that; what the user has asked since is still to be answered.
            self._superseded -= 1
            return False
        self._held.answered()
        return True

    def _rest(self, state: State) -> None:
        # The user may have asked something else while the answer was being kept.
        if not self._held.owed:
            self._course.go(state)

    async def _on_going_away(self, event: GoingAway) -> None:
        self._held.plan_renewal("going_away", event.seconds)

    async def _on_usage(self, event: Usage) -> None:
        self.tokens += event.input_tokens + event.output_tokens

    async def _on_trouble(self, event: Trouble) -> None:
        _log.warning("session %s: %s %s", self.session.id, event.code, event.detail)
        broken = self._held.line.broken
        goes_on = broken or await self._held.trouble(event)
        await self._deliver(of_trouble(event.code, given_up=not goes_on))
        if broken:
            # It was said, though the provider did not live to write down the end of it.
            if await self._floor.break_off():
                self._held.owed = True
            self._course.go(State.RECONNECTING)
            await self._held.broke(event)
        elif not goes_on and self.session.state is not State.SPEAKING:
            await self._end_turn()

    async def _on_restored(self, _: Restored) -> None:
        self._course.go(State.READY)
        if await self._held.ask_again():
            self._course.go(State.PROCESSING)

    # What has to be done in between.

    async def _end_turn(self) -> None:
        """End a turn that the model will not end."""
        await self._on_turn_complete(TurnComplete())
        await self._deliver(TurnComplete())

    async def _cut_short(self) -> None:
        cut_off = await self._floor.cut_short()
        if cut_off:
            await (await self._held.connection()).truncate(cut_off.item, cut_off.heard_ms)

    async def _begin_turn(self, said: str = "") -> None:
        try:
            await self._runtime.begin_turn(self.session, said)
        except StoreUnavailableError as error:
            # The turn has begun all the same; it is kept with the next one.
            _log.error("session %s could not be kept: %s", self.session.id, error)

    async def _hang_up(self) -> None:
        await self._held.end()

    async def _tell_model(self, text: str, *, respond: bool) -> None:
        await (await self._held.connection()).send_context(text, respond=respond)

    async def _tell_late(self, text: str, respond: bool) -> None:
        """Tell the model about an outcome that came late."""
        if respond:
            self._held.owed = True
            await self.journal.keep()
        await self._tell_model(text, respond=respond)

    def _encode(self, answer: Answer) -> bytes:
        """An answer as the model gets it."""
        return self._omitted_guides.encode(answer.tool_id, answer.wire, self._held.line.renewals)

    async def _notice(self, code: str) -> None:
        await self._deliver(of_trouble(code))

    @property
    def _held(self) -> Continuity:
        return self._open[0]

    @property
    def _calls(self) -> Calls:
        return self._open[1]

    @property
    def _open(self) -> tuple[Continuity, Calls]:
        if self._reached is None:
            raise TransportError("network", "the conversation has not been opened")
        return self._reached

    def _busy(self, state: State) -> None:
        self._held.quiet.clear()
        self._course.go(state)
