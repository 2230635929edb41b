"""Policies of both shapes, a handler of intents, and an observer."""

from __future__ import annotations

from jackfield import ErrorType, fail
from jackfield.governance import SyncPolicy


class Stamp:
    """A policy that wraps a call."""

    def __init__(self, store):
        self.store = store

    def applies_to(self, tool, session):
        return tool.manifest.tool_id.startswith("parcel_")

    async def apply(self, call, proceed):
        count = await self.store.add("golden:stamps", 1, window=3600)
        response = await proceed(call)
        call.decide("stamp", "stamped")
        return response.with_meta(stamped=count >= 1)


class Hours(SyncPolicy):
    """A policy that waits for nothing."""

    def __init__(self, settings):
        self.closed = settings.get("closed", False)

    def before(self, call):
        if self.closed and call.tool.manifest.writes:
            call.end("hours", "closed")
            return fail(ErrorType.TRANSIENT, "The office is closed.", retryable=True)
        return None


class Mark:
    """Knows the intent PARCEL_MARK."""

    def refusal(self, session, params):
        return None if "number" in params else "it has no number"

    def apply(self, session, params):
        session.set_flag("parcel_mark", params["number"])


class Watch:
    """Is told what happens."""

    def __init__(self, store):
        self.store = store
        self.finished = []

    def call_finished(self, call, response):
        self.finished.append((call.tool.id, response.ok))

    def session_opened(self, session, *, prompt_tokens, declaration_tokens):
        pass

    def turn_began(self, session):
        pass

    def session_ended(self, session):
        pass

    async def close(self):
        pass
