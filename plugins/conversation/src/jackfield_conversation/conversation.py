"""One conversation: a session, a line to a model, and a client in front of it."""

from __future__ import annotations

import asyncio

from jackfield.confirmation import Pending
from jackfield.orchestrator import Answer
from jackfield.session.machine import State

from jackfield_conversation.answering import Answering
from jackfield_conversation.output import cut


class Conversation(Answering):
    """Drives a session: what the user says goes to the model, its calls are run, its answers come back."""

    @property
    def ending(self) -> bool:
        """Whether last words are being spoken, or a tool is running that may ask for them."""
        return self._farewell.deaf or (self._reached is not None and self._held.working > 0)

    @property
    def busy(self) -> bool:
        """Whether tools are running."""
        return bool(self._approved) or (
            self._reached is not None and (self._held.working > 0 or self._calls.beside)
        )

    async def say(self, text: str, *, mark: str | None = None) -> None:
        """The user writes; whatever the model was saying is over.

        What a client says again under the same `mark`, not knowing whether it arrived, is said once.
        """
        if self._farewell.deaf or not self.journal.takes(mark):
            return
        if self._held.owed:
            self._superseded += not self._held.working
            await self.interrupt()
        self._held.owed = True
        # Side by side, so that the store writes all of it to the disk at once.
        await asyncio.gather(self._begin_turn(text), self.journal.said("user", text, mark=mark))
        self._busy(State.PROCESSING)
        await (await self._held.connection()).send_text(text)

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
        if self._held.working:
            # A model that waits for its calls says nothing; its answers bring it to speak again.
            return
        if not self._held.owed and self.ledger.unheard:
            # It has said everything, faster than it plays; the rest of that will not be heard.
            await self._cut_short()
        await (await self._held.connection()).interrupt()

    def cancel(self, call_id: str) -> None:
        """The user does not want to wait for a call; one that writes goes on to its end all the same."""
        self._calls.stop("cancelled by the user", [call_id])

    async def answer_confirmation(self, token: str, *, approve: bool) -> Answer | Pending | None:
        """The user's word on a call that waits for it; the model is told what really happened.

        The approved call's answer, the declined call, or nothing for a token that is good for nothing.
        """
        pending = await self._runtime.confirmations.redeem(self.session, token)
        if pending is None:
            return None
        outcome = {"tool": pending.tool_id, "callId": pending.call_id, "approved": approve}
        # Before it runs, which may take minutes: the user's word has arrived.
        self.session.publish("confirmation_settled", outcome)
        settled = await self._run_approved(pending) if approve else self._declined(pending)
        if isinstance(settled, Answer):
            self.memory.add_call(settled.tool_id, settled.wire)
            self._calls.told(settled)
            answer = cut(settled.wire).decode()
            text = f"The user approved the call of {settled.tool_id}; it ran once. {answer}"
        else:
            text = f"The user declined the call of {settled.tool_id}; it was not run. Do not call it unasked."
        self._held.owed = True
        await self.journal.keep(counters=True)
        await self._tell_model(text, respond=True)
        return settled

    async def _run_approved(self, pending: Pending) -> Answer:
        self._approved += 1
        try:
            return await self._runtime.orchestrator.run_confirmed(self.session, pending)
        finally:
            self._approved -= 1

    def _declined(self, pending: Pending) -> Pending:
        self._runtime.orchestrator.record_declined(self.session, pending)
        return pending

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

    async def go_on(self) -> None:
        """Take up what another process had to leave: calls under way, or an answer that was owed."""
        if self._calls.take_up():
            self._busy(State.PROCESSING)
            self._course.go(State.EXECUTING_TOOL)
        elif await self._held.ask_again():
            self._course.go(State.PROCESSING)

    async def settle(self) -> None:
        """Wait until no tool is running."""
        await self._calls.settle()

    async def close(self) -> None:
        """Hang up; writes that are under way still end."""
        self._farewell.cancel()
        await self._held.end()
        await self._calls.settle(beside=False)
