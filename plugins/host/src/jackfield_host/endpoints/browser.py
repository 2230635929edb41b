"""`GET /session` and `POST /sdp`: calls that a browser makes to the provider itself, over WebRTC."""

from __future__ import annotations

import re

from jackfield.protocol.close_codes import ENDED, PROVIDER_UNAVAILABLE, UNKNOWN_SESSION
from jackfield.transport.protocol import BrowserTransport, TransportError
from jackfield.transport.provider_errors import PROVIDER_ERRORS
from jackfield_sessions.admission import SessionRefused
from jackfield_sessions.browser_calls import BrowserCallTransport, has_browser_calls, prepare
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import NAMED, Operation, Said
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError
from jackfield_host.wire.answers import BrowserAnswer, BrowserSession
from jackfield_host.wire.bodies import OFFER, OfferBody


async def session(visit: Visit) -> Response:
    """Prepare a voice session for a browser's own call."""
    visit.check_mode("voice")
    transport = _browser_transport(visit)
    try:
        prepared, secret = await prepare(visit.sessions, transport, visit.identity)
    except TransportError as error:
        raise _unreachable(error) from None
    tools = visit.sessions.runtime.registry.summaries("voice")
    return JSONResponse(
        {
            "client_secret": secret.value,
            "session_id": prepared.id,
            "token": prepared.token,
            "tools": [{"id": tool, "summary": summary} for tool, summary in tools.items()],
            "expires_at": secret.expires_at,
        }
    )


async def sdp(visit: Visit) -> Response:
    """Exchange a browser's offer; the host joins the call for tools and transcripts."""
    visit.check_mode("voice")
    transport = _browser_transport(visit)
    body = await visit.body(OfferBody)
    if not re.match(OFFER, body.sdp):
        raise HttpError(400, "invalid_sdp", "The body, at sdp: this is no offer of a peer with sound.")
    token = visit.required_token()
    call = BrowserCallTransport(transport, body.sdp)
    try:
        kept = await visit.session()
        if kept.id != body.session_id:
            raise HttpError(409, "other_session", "The header names another session than the body.")
        if kept.mode != "voice":
            raise HttpError(409, "wrong_mode", "This session is one of text.")
        live = await visit.sessions.resume(token, visit.identity, transport=call)
    except SessionRefused as refused:
        await call.hang_up()
        raise _refused(refused, call) from None
    live.on_end = call.hang_up
    return JSONResponse({"sdp": call.answer})


def _browser_transport(visit: Visit) -> BrowserTransport:
    transport = visit.sessions.transport
    if not has_browser_calls(transport):
        raise HttpError(
            503,
            "no_browser_calls",
            f"The provider {visit.sessions.factory.provider} is not set up for calls of a browser's own.",
            suggestion="Use the WebSocket /ws/voice.",
        )
    return transport


def _refused(refused: SessionRefused, call: BrowserCallTransport) -> Exception:
    if refused.closing in (UNKNOWN_SESSION, ENDED):
        return HttpError(
            401, "session_expired", refused.message, suggestion="Get a new session from GET /session."
        )
    if call.refusal is not None and call.refusal.code == "invalid_request_error":
        return HttpError(400, "invalid_sdp", "The provider does not accept this offer.")
    return refused


def _unreachable(error: TransportError) -> HttpError:
    kind = PROVIDER_ERRORS[error.code]
    sentence = f"{kind.message} {kind.suggestion}"
    return HttpError(503, PROVIDER_UNAVAILABLE.name, sentence, retry_after=error.retry_after)


SESSION = Operation(
    "GET",
    "/session",
    "Prepare a voice session for a call that a browser makes itself.",
    session,
    answers={200: (Said("What the browser needs for the call.", BrowserSession),)},
    fails={404: "The token is good for one session alone."},
    safe=False,
)

SDP = Operation(
    "POST",
    "/sdp",
    "Exchange a browser's offer for the provider's answer.",
    sdp,
    body=OfferBody,
    parameters=(NAMED,),
    answers={200: (Said("The provider's answer; the host joins the call.", BrowserAnswer),)},
    fails={
        400: "The offer is none, or the provider does not accept it.",
        409: "The session is one of text, or header and body name two.",
    },
)
