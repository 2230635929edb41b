"""`GET /session` and `POST /sdp`: WebRTC calls that a browser makes to the provider directly."""

from __future__ import annotations

import re

from jackfield.protocol.close_codes import ENDED, PROVIDER_UNAVAILABLE, UNKNOWN_SESSION
from jackfield.transport.protocol import BrowserTransport, TransportError
from jackfield.transport.provider_errors import PROVIDER_ERRORS
from jackfield_sessions.admission import SessionRefused
from jackfield_sessions.browser_calls import BrowserCallTransport, has_browser_calls, prepare
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import SESSION_HEADER, Endpoint, RequestContext, ResponseForm
from jackfield_host.errors import HttpError


async def session(context: RequestContext) -> Response:
    """Prepare a voice session for a browser's call."""
    context.check_mode("voice")
    transport = _browser_transport(context)
    try:
        prepared, secret = await prepare(context.sessions, transport, context.identity)
    except TransportError as error:
        raise _provider_unavailable(error) from None
    tools = context.sessions.runtime.registry.catalog(prepared.toolset).summaries("voice")
    return JSONResponse(
        {
            "client_secret": secret.value,
            "session_id": prepared.id,
            "token": prepared.token,
            "tools": [{"id": tool, "summary": summary} for tool, summary in tools.items()],
            "expires_at": secret.expires_at,
        }
    )


async def sdp(context: RequestContext) -> Response:
    """Exchange a browser's offer for the provider's answer; the host joins for tools and transcripts."""
    from jackfield_host.request_models import SDP_OFFER, SdpOfferBody

    context.check_mode("voice")
    transport = _browser_transport(context)
    body = await context.body(SdpOfferBody)
    if not re.match(SDP_OFFER, body.sdp):
        raise HttpError(400, "invalid_sdp", "Invalid body at sdp: this is not an SDP offer with audio.")
    token = context.require_session_token()
    call = BrowserCallTransport(transport, body.sdp)
    try:
        stored = await context.session()
        if stored.id != body.session_id:
            raise HttpError(409, "other_session", "The header and the body name different sessions.")
        if stored.mode != "voice":
            raise HttpError(409, "wrong_mode", "This is a text session; a call needs a voice session.")
        live = await context.sessions.resume(token, context.identity, transport=call)
    except SessionRefused as refused:
        await call.hang_up()
        raise _refused(refused, call) from None
    live.on_end = call.hang_up
    return JSONResponse({"sdp": call.answer})


def _browser_transport(context: RequestContext) -> BrowserTransport:
    transport = context.sessions.transport
    if not has_browser_calls(transport):
        raise HttpError(
            503,
            "no_browser_calls",
            f"The provider {context.sessions.factory.provider} is not set up for calls from a browser.",
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


def _provider_unavailable(error: TransportError) -> HttpError:
    kind = PROVIDER_ERRORS[error.code]
    message = f"{kind.message} {kind.suggestion}"
    return HttpError(503, PROVIDER_UNAVAILABLE.name, message, retry_after=error.retry_after)


SESSION = Endpoint(
    "GET",
    "/session",
    "Prepare a voice session for a WebRTC call from a browser.",
    session,
    responses={200: (ResponseForm("What the browser needs for the call.", "BrowserSessionResponse"),)},
    errors={404: "The access token is valid for one session only."},
    safe=False,
)

SDP = Endpoint(
    "POST",
    "/sdp",
    "Exchange a browser's SDP offer for the provider's answer.",
    sdp,
    body="SdpOfferBody",
    parameters=(SESSION_HEADER,),
    responses={200: (ResponseForm("The provider's answer; the host joins the call.", "SdpAnswerResponse"),)},
    errors={
        400: "The offer is invalid, or the provider does not accept it.",
        409: "The session is a text session, or the header and the body name different sessions.",
    },
)
