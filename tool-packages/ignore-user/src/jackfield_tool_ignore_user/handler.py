"""Bans the session's user before anything else, because the ban must apply even if the client has left."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, NamedTuple

from jackfield import ErrorType, ToolContext, ToolResponse, end_voice_session, fail, ok
from jackfield.store import StoreUnavailableError


class _Ban(NamedTuple):
    """A ban with its current end."""

    until: float
    seconds: int


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Ban the user, inform the client, and in voice end the session after the closing sentence."""
    session = ctx.session
    if not session.active:
        return fail(ErrorType.SESSION_INACTIVE, "The session has already ended; the user was not banned.")
    # A signed-in user is banned everywhere; without a user only this session is banned.
    scope = "user" if session.user else "session"
    try:
        ban = await _add_ban(args["duration_seconds"], ctx)
    except StoreUnavailableError:
        return _in_doubt()
    ctx.audit(
        "user_banned",
        scope=scope,
        duration_seconds=args["duration_seconds"],
        until=ban.until,
        reason=args["reason"].strip() or None,
    )
    farewell = args["farewell_message"].strip()
    in_voice = session.mode == "voice"
    data = {
        "scope": scope,
        "until": datetime.fromtimestamp(ban.until, UTC).isoformat(timespec="seconds"),
        "seconds_remaining": ban.seconds,
        "client_told": await _tell_client(ban, farewell, ctx),
        "say": farewell if in_voice else None,
    }
    return ok(data, end_voice_session(after="farewell_spoken")) if in_voice else ok(data)


async def _add_ban(seconds: float, ctx: ToolContext) -> _Ban:
    who = ctx.session
    until: float = await ctx.bans.add(who.user, seconds, who.id)
    # Read rather than computed: an earlier ban counts too, and the end is in the store's time.
    remaining: float = await ctx.bans.remaining(who.user, who.id)
    return _Ban(until, math.ceil(remaining))


async def _tell_client(ban: _Ban, farewell: str, ctx: ToolContext) -> bool:
    try:
        await ctx.messaging.send("ban", until=ban.until, seconds=ban.seconds, message=farewell)
    except ConnectionError:
        # A user who closes the window is banned anyway.
        ctx.audit("ban_notice_lost")
        return False
    return True


def _in_doubt() -> ToolResponse:
    return fail(
        ErrorType.TRANSIENT,
        "It is not certain that the ban was recorded.",
        partial_side_effects=True,
        suggestion="Tell the user calmly that the conversation is over; call again only if abuse continues.",
    )
