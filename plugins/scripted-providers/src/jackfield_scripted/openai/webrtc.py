"""A browser's WebRTC calls: client secrets, the SDP exchange, and hanging up."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jackfield_scripted.openai.errors import error_body
from jackfield_scripted.openai.realtime_response import RealtimeSocket

SdpAnswer = Callable[[str], Awaitable[str]]


@dataclass(slots=True)
class OpenedCall:
    """One call: its offer, its session, and the sideband sockets that joined it."""

    offer: str
    session: dict[str, Any]
    sidebands: list[RealtimeSocket] = field(default_factory=list)
    hung_up: bool = False


class WebRtcCalls:
    """Every client secret that was minted and every call that was opened."""

    def __init__(self, answer: SdpAnswer | None = None) -> None:
        self.minted: dict[str, dict[str, Any]] = {}
        self.opened: dict[str, OpenedCall] = {}
        self._answer = answer

    async def mint(self, request: Request) -> Response:
        """Handle POST client_secrets."""
        body = orjson.loads(await request.body())
        seconds = (body.get("expires_after") or {}).get("seconds", 600)
        session = body.get("session") or {}
        if not 10 <= seconds <= 7200 or session.get("type") != "realtime":
            return _error(400, "invalid_value", "expected 10 to 7200 seconds and a session of type realtime")
        value = f"ek_{len(self.minted) + 1:06}"
        self.minted[value] = session
        return JSONResponse({"value": value, "expires_at": int(time.time()) + seconds, "session": session})

    async def open(self, request: Request) -> Response:
        """Handle POST calls: an offer with a client secret, or a form with offer and session."""
        if request.headers.get("content-type", "").startswith("application/sdp"):
            key = request.headers["authorization"].removeprefix("Bearer ")
            offer, session = (await request.body()).decode(), self.minted.get(key)
            if session is None:
                return _error(401, "invalid_api_key", "unknown client secret")
        else:
            offer, session = await _read_form(request)
            if not offer or session.get("type") != "realtime":
                return _error(400, "invalid_request_error", "expected sdp and a session of type realtime")
        call_id = f"rtc_{len(self.opened) + 1:06}"
        self.opened[call_id] = OpenedCall(offer, session)
        answer = await self._answer(offer) if self._answer else "v=0\r\ns=scripted answer\r\n"
        headers = {"location": f"/v1/realtime/calls/{call_id}"}
        return Response(answer, 201, headers, media_type="application/sdp")

    async def hang_up(self, request: Request) -> Response:
        """Handle POST calls/{id}/hangup."""
        call = self.opened.get(request.path_params["call_id"])
        if call is None or call.hung_up:
            return _error(404, "call_id_not_found", "unknown call")
        call.hung_up = True
        for socket in call.sidebands:
            await socket.close(1000, "hung up")
        return Response(status_code=200)


async def _read_form(request: Request) -> tuple[str, dict[str, Any]]:
    async with request.form() as form:
        parts = {}
        for name in ("sdp", "session"):
            part = form.get(name, "")
            parts[name] = (await part.read()).decode() if isinstance(part, UploadFile) else part
    return parts["sdp"], orjson.loads(parts["session"] or "{}")


def _error(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": error_body(code, message)}, status)
