"""One conversation: a session, a line to a model, and a client in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from jackfield.orchestrator import Answer
from jackfield.session.machine import State
from jackfield.transport.events import Interrupted

from jackfield_sessions.answering import Answering
from jackfield_sessions.forms import FormError, Submission, closed_event, encode

FORMS_SECONDS = 60.0
"""How long a connection that asks in the wrong way may wait for a quiet moment to be renewed."""


class Conversation(Answering):
    """Drives a session: what the user says goes to the model, its calls are run, its answers come back."""

    @property
    def ending(self) -> bool:
        """Whether last words are being spoken, or a tool is running that may ask for them."""
        return self._farewell.deaf or (self._reached is not None and self._held.working > 0)

    @property
    def busy(self) -> bool:
        """Whether tools are running."""
        return self._late.running or (
            self._reached is not None and (self._held.working > 0 or self._calls.beside)
        )

    async def say(self, text: str, *, mark: str | None = None) -> None:
        """The user writes; whatever the model was saying is over.

        What a client says again under the same `mark`, not knowing whether it arrived, is said once.
        """
        if self._farewell.deaf or not self.journal.takes(mark):
            return
        await self._begin_user_turn(text, mark)
        await (await self._held.connection()).send_text(text)

    async def submit_form(self, form_id: str, values: Mapping[str, Any], *, mark: str | None = None) -> None:
        """The user completed a form: a turn like any other, in which its tool is to be called.

        A form that is submitted again under the same `mark` is submitted once. `FormError` says why a form
        is not accepted; one whose values do not fit the tool's schema stays open.
        """
        if self._farewell.deaf or (mark is not None and mark in self.journal.marks):
            return
        forms = self.journal.forms
        tool_id = forms.tool_of(form_id)
        tool = self._runtime.registry.get(tool_id)
        if tool is None:
            gone = f"The tool {tool_id} of this form is no longer offered."
            raise FormError(form_id, "unknown_form", gone, "Dismiss the form.")
        arguments = encode(form_id, values, tool.arguments)
        # All of this before the first wait: of two submissions at a time, one counts.
        self.journal.takes(mark)
        forms.close(form_id, submitted=True)
        submission = Submission(tool_id, arguments)
        await self._begin_user_turn(submission.text, mark, submission)
        self.session.publish("form_closed", closed_event(form_id, submitted=True, values=submission.values))
        await submission.send(await self._held.connection())

    async def dismiss_form(self, form_id: str) -> None:
        """The user does not want to complete a form; `FormError` if there is nothing to dismiss."""
        tool_id = self.journal.forms.close(form_id, submitted=False)
        await self.journal.keep()
        self.session.publish("form_closed", closed_event(form_id, submitted=False))
        send_form = getattr(await self._held.connection(), "send_form", None)
        if send_form is not None:
            await send_form(tool_id, None)

    async def accept_forms(self, forms: bool) -> None:
        """Whether the client that is attached now shows forms.

        A connection is told when it is opened, so one that can ask with forms is renewed.
        """
        if forms == self._openings.forms:
            return
        self._openings.forms = forms
        if not self._held.line.broken and hasattr(await self._held.connection(), "send_form"):
            renewal = self._held.plan_renewal("forms", FORMS_SECONDS)
            if self._held.quiet.is_set():
                await asyncio.wait({renewal})

    async def _begin_user_turn(
        self, text: str, mark: str | None, submission: Submission | None = None
    ) -> None:
        if self._held.owed:
            self._superseded += not self._held.working
            await self.interrupt()
        elif self.ledger.unheard:
            await self._stop_playback()
        self._held.owed = True
        self.journal.submission = submission
        # Side by side, so that the store writes all of it to the disk at once.
        await asyncio.gather(self._begin_turn(text), self.journal.said("user", text, mark=mark))
        self._busy(State.PROCESSING)

    async def listen(self, pcm: bytes) -> None:
        """The user speaks: PCM16, 24 kHz, mono."""
        if not self._farewell.deaf:
            await self._held.line.send_audio(pcm)

    def heard(self, item: str, ms: int) -> None:
        """The client has played so much of an item."""
        self.ledger.heard(item, ms)

    async def interrupt(self) -> None:
        """The user wants the model to stop: reads are stopped, writes go on to their end."""
        self._calls.stop()
        self._floor.silence()
        if self.ledger.unheard and (self._held.working or not self._held.owed):
            # It has said everything, faster than it plays; the rest of that will not be heard.
            await self._stop_playback()
        if self._held.working:
            # A model that waits for its calls says nothing; its answers bring it to speak again.
            await self._calls.silence()
            return
        await (await self._held.connection()).interrupt()
        if self.session.mode == "voice" and self.session.state is State.PROCESSING:
            self._course.go(State.LISTENING)

    async def _stop_playback(self) -> None:
        """Silence speech that the model has ended, and that the client still plays."""
        self._floor.silence()
        await self._cut_short()
        await self._deliver(Interrupted())

    def cancel(self, call_id: str) -> None:
        """The user does not want to wait for a call; one that writes goes on to its end all the same."""
        self._calls.stop("cancelled by the user", [call_id])

    async def resolve_confirmation(self, token: str, *, approve: bool) -> Answer | None:
        """The user's decision about a waiting call; the model is told what really happened.

        The answer says what became of the call; nothing for a token that is unknown in this session.
        """
        return await self._late.resolve(token, approve=approve)

    async def note(self, text: str, *, urgent: bool = False) -> None:
        """Something the model should know: at once, or when it next pauses."""
        if urgent or self._held.quiet.is_set():
            await self._tell_model(text, respond=False)
        else:
            self._waiting_notes.append(text)

    async def begin_with(self, request: str) -> None:
        """Take up, unasked, what the user wanted before this conversation began."""
        self._held.owed = True
        self.memory.add("user", request)
        await self.journal.keep()
        self._busy(State.PROCESSING)
        text = f"Before this call, the user asked in the chat: {request!r}. Take that up first, in one go."
        await self._tell_model(text, respond=True)

    async def restore(self) -> None:
        """Learn what was decided while nobody held the session; before the model is reached."""
        await self._late.restore()

    async def go_on(self) -> None:
        """Take up what another process had to leave: calls under way, or an answer that was owed."""
        if self._calls.take_up():
            self._busy(State.PROCESSING)
            self._course.go(State.EXECUTING_TOOL)
        elif await self._held.ask_again():
            self._course.go(State.PROCESSING)
        await self._late.resume()

    async def settle(self) -> None:
        """Wait until no tool is running."""
        await self._calls.settle()

    async def close(self) -> None:
        """Hang up; writes that are under way still end."""
        self._farewell.cancel()
        self._late.close()
        await self._held.end()
        await self._calls.settle(beside=False)
