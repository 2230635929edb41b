"""`GET /asyncapi.json`: the protocol of the WebSockets, for whoever writes a client."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jackfield_host.house import House
from jackfield_host.security.gate import Arrival
from jackfield_host.security.identity import Refused


async def asyncapi(request: Request) -> Response:
    """The AsyncAPI document; it holds no secret, so names alone are checked."""
    from jackfield_host.wire.asyncapi import document

    try:
        House.of(request).gate.screen(Arrival.of(request.scope), page=True)
    except Refused as refused:
        answer = {"error": {"code": refused.code, "message": refused.sentence}}
        return JSONResponse(answer, refused.status, headers=refused.headers)
    return JSONResponse(document())
