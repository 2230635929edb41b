"""Requests the end of a voice session, after the turn or after a closing message."""

from __future__ import annotations

from typing import Any, Literal

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Send the text to the chat and end after the turn, or after the closing message if there is one."""
    if not ctx.session.active:
        return fail(ErrorType.SESSION_INACTIVE, "The session has already ended.")
    if not ctx.voice.active:
        return fail(
            ErrorType.SESSION_INACTIVE,
            "This is a text session; there is no voice session to end.",
            suggestion="Answer in text.",
        )
    closing = args["closing_message"].strip() or None
    text_sent = await _send_text(args["text_message"].strip(), ctx)
    after: Literal["current_turn", "farewell_spoken"] = "farewell_spoken" if closing else "current_turn"
    ctx.audit("voice_session_end_requested", reason=args["reason"], after=after, text_sent=text_sent)
    data = {"reason": args["reason"], "ends_after": after, "say": closing, "text_sent": text_sent}
    return ok(data, ctx.voice.end(after))


async def _send_text(text: str, ctx: ToolContext) -> bool:
    if not text:
        return False
    try:
        await ctx.messaging.send("chat_message", text=text)
    except ConnectionError:
        # A disconnected chat is no reason to keep the microphone open.
        return False
    return True
