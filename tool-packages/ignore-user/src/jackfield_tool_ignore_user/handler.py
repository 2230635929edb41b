"""Bans whoever is talking: the ban first, because it has to hold even when nobody can be told any more."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, NamedTuple

from jackfield import ErrorType, ToolContext, ToolResponse, end_voice_session, fail, ok
from jackfield.store import StoreUnavailableError


class _Ban(NamedTuple):
    """A ban as it holds now."""

    until: float
    seconds: int


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Ban the user, tell the client, and in voice end the session once the farewell was heard."""
    session = ctx.session
    if not session.active:
        return fail(ErrorType.SESSION_INACTIVE, "The session is over already; nobody was banned.")
    # A user is banned everywhere, and where nobody is signed in this session is.
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
    # Asked, not computed: an earlier ban counts too, and the end is by the store's clock, not by ours.
    remaining: float = await ctx.bans.remaining(who.user, who.id)
    return _Ban(until, math.ceil(remaining))


async def _tell_client(ban: _Ban, farewell: str, ctx: ToolContext) -> bool:
    try:
        await ctx.messaging.send("ban", until=ban.until, seconds=ban.seconds, message=farewell)
    except ConnectionError:
        # Who closes the window on the way out is banned all the same.
        ctx.audit("ban_notice_lost")
        return False
    return True


def _in_doubt() -> ToolResponse:
    return fail(
        ErrorType.TRANSIENT,
        "The ban could not be recorded, or it was and cannot be confirmed.",
        partial_side_effects=True,
        suggestion="Tell the user calmly that the conversation is over; call again only if abuse goes on.",
    )
