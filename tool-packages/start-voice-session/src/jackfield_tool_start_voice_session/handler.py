"""Asks the client to open a voice session, because only the user can grant the microphone."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok, set_pending_message


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Send the request to the client, and store the message that the voice session starts with."""
    session = ctx.session
    if not session.active:
        return fail(ErrorType.SESSION_INACTIVE, "The session has ended, so no voice session was started.")
    if session.mode == "voice":
        return fail(
            ErrorType.SESSION_ACTIVE,
            "This is already a voice session.",
            suggestion="Answer the user by voice in this session.",
        )
    pending = args["pending_request"].strip() or None
    try:
        await ctx.messaging.send("voice_session_start", fromSession=session.id, pendingRequest=pending)
    except ConnectionError:
        return fail(
            ErrorType.TRANSIENT,
            "The user's client cannot be reached, so no voice session was started.",
            retryable=True,
            suggestion="Continue in text, and offer to try again.",
        )
    # The text itself is in the arguments of the call; the audit record only says whether there was any.
    ctx.audit("voice_session_requested", has_pending_request=pending is not None)
    data = {"status": "requested", "pending_request": pending}
    return ok(data, set_pending_message(pending)) if pending else ok(data)
