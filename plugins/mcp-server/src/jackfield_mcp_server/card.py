"""The card of a waiting call: its address, and the endpoints behind it.

An address names a confirmation by its id and holds no secret, because a model may read it. The card asks for
the user's own access token, and only that user can decide.
"""

from __future__ import annotations

import re
from typing import Any

import orjson
from jackfield.call_states import CallState, state_of
from jackfield.confirmation import APPROVED, PendingConfirmation
from jackfield_host.errors import HttpError
from jackfield_host.host import Host
from jackfield_sessions.late_outcomes import contradicts, decided_before
from jackfield_sessions.manager import SessionManager
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

_IS_ID = re.compile(r"[0-9a-f]{32}")

CONSOLE = "console"
"""The endpoint that shows cards."""


def card_link(request: Request | None, pending: PendingConfirmation, public_url: str | None) -> str | None:
    """Return the address of a card; None if no console can show it."""
    base = public_url
    if base is None and request is not None:
        has_console = any(each.offer.name == CONSOLE for each in Host.of(request).endpoints)
        base = str(request.base_url) if has_console else None
    return None if base is None else f"{base.rstrip('/')}/#/confirmation/{pending.session_id}/{pending.id}"


class Cards:
    """`GET` and `POST /mcp/confirmations/{session}/{confirmation}`: shows and decides a waiting call."""

    def __init__(self, sessions: SessionManager) -> None:
        self._sessions = sessions

    async def show(self, request: Request) -> Response:
        """Return the card of a call that waits for the user's confirmation."""
        pending = await self._pending(request)
        runtime = self._sessions.runtime
        state = (await runtime.ledger.status_of(pending)).state
        return JSONResponse(
            {
                "tool": pending.tool_id,
                "callId": pending.call_id,
                "preview": pending.preview,
                "args": pending.args,
                "expiresAt": pending.expires_at,
                "seconds": max(0.0, pending.expires_at - runtime.store.now()),
                "state": state.value,
            }
        )

    async def decide(self, request: Request) -> Response:
        """Approve or decline a waiting call, and return its outcome."""
        pending = await self._pending(request)
        approve = await _decision(request)
        session = await self._sessions.direct_calls.load(pending.session_id, repin=True)
        if session is None:
            raise _unknown()
        answer = await self._sessions.direct_calls.resolve_pending(session, pending, approve=approve)
        state = state_of(answer.wire)
        result: dict[str, Any] = {"state": state.value, "tool": answer.tool_id, "callId": answer.call_id}
        result["approved"] = state not in (CallState.DECLINED, CallState.EXPIRED)
        if answer.replayed and contradicts(state, approve=approve):
            result["error"] = HttpError(409, "already_decided", decided_before(state)).wire
            return JSONResponse(result, 409)
        return JSONResponse(result)

    async def _pending(self, request: Request) -> PendingConfirmation:
        """Return the confirmation that the path names, if it belongs to the user."""
        session_id, found_id = request.path_params["session"], request.path_params["confirmation"]
        if not (_IS_ID.fullmatch(session_id) and _IS_ID.fullmatch(found_id)):
            raise _unknown()
        pending = await self._sessions.runtime.confirmations.for_run(f"{APPROVED}{session_id}/{found_id}")
        if pending is None or pending.user != request.state.identity.user:
            raise _unknown()
        return pending


async def _decision(request: Request) -> bool:
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        body = None
    approve = body.get("approve") if isinstance(body, dict) else None
    if not isinstance(approve, bool):
        raise HttpError(400, "invalid", 'The body must be {"approve": true} or {"approve": false}.')
    return approve


def _unknown() -> HttpError:
    return HttpError(
        404,
        "unknown_confirmation",
        "There is no such confirmation request for you. Requests are removed after one day.",
    )
