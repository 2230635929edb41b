"""Tool calls over HTTP: runs them, accepts the user's decisions, and reports their state.

A call under an idempotency key runs once: every repetition finds the same session and the same claim.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson
from jackfield import ErrorType
from jackfield.call_events import MAX_CHARACTERS
from jackfield.call_states import CallState, in_doubt, state_of
from jackfield.confirmation import PendingConfirmation
from jackfield.contract.tool import Failure, ToolCall
from jackfield.ledger import CallStatus, is_stable, stable_key
from jackfield.orchestrator import CallResult
from jackfield.protocol.close_codes import UNKNOWN_SESSION
from jackfield.protocol.codec import to_wire
from jackfield.session.session import Session, SessionFormatError
from jackfield.truncation import truncate_result
from jackfield_sessions.admission import Identity, SessionRefused, check_access
from jackfield_sessions.events import events_for_call
from jackfield_sessions.late_outcomes import UNKNOWN_CONFIRMATION, contradicts, decided_before
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import (
    EVENT_STREAM,
    OPTIONAL_SESSION_HEADER,
    SESSION_HEADER,
    Endpoint,
    EndpointParameter,
    RequestContext,
    ResponseForm,
)
from jackfield_host.endpoints.call_stream import stream_call, wants_stream
from jackfield_host.endpoints.events import LAST_EVENT_ID
from jackfield_host.errors import HttpError, retry_after_header

if TYPE_CHECKING:
    from jackfield_host.request_models import ExecuteBody

IDEMPOTENCY_KEY = "Idempotency-Key"

TURN = "Jackfield-Turn"
"""The header by which a client groups calls into one turn."""

_KEY_PATTERN = r"[\x21-\x7e]{1,200}"

STATUSES = {
    ErrorType.VALIDATION: 400,
    ErrorType.MODE_RESTRICTED: 403,
    ErrorType.AUTH: 403,
    ErrorType.NOT_FOUND: 404,
    ErrorType.CONFLICT: 409,
    ErrorType.SESSION_ACTIVE: 409,
    ErrorType.SESSION_INACTIVE: 409,
    ErrorType.PERMANENT: 422,
    ErrorType.BUDGET_EXCEEDED: 429,
    ErrorType.RATE_LIMIT: 429,
    ErrorType.LOOP_DETECTED: 429,
    ErrorType.CONFIRMATION_REQUIRED: 202,
    ErrorType.INTERNAL: 500,
    ErrorType.TRANSIENT: 503,
}
"""The HTTP status of a failed call, by error type; a call that timed out has 408."""

Event = dict[str, Any]


class CallResponse(JSONResponse):
    """A JSON response about a call, encoded in the same way as the envelope in it."""

    def render(self, content: Any) -> bytes:
        """Encode the response."""
        return orjson.dumps(content)


async def execute(context: RequestContext) -> Response:
    """Run a call under the same policies as a model's call, and return or stream its outcome."""
    from jackfield_host.request_models import ExecuteBody

    body = await context.body(ExecuteBody)
    key, turn = _idempotency_key(context, body), _turn(context)
    session = await _session(context, key)
    call_id = _call_id(session, key)
    call = ToolCall(context.request.path_params["tool"], orjson.dumps(body.arguments), call_id)
    store = context.sessions.runtime.store
    again = bool(key and await events_for_call(session, store, call_id))
    running = _run(context, session, call, call_id, again=again, turn=turn)
    if wants_stream(context):
        return stream_call(context, session, call_id, running)
    result, status = await running
    retry_after = result["error"].get("retryAfter") if "error" in result else None
    return CallResponse(result, status, headers=retry_after_header(retry_after))


async def _run(
    context: RequestContext, session: Session, call: ToolCall, call_id: str, *, again: bool, turn: str | None
) -> tuple[dict[str, Any], int]:
    """Run a call; return the body and the status of the response."""
    answer = await context.sessions.direct_calls.run(session, call, again=again, group=turn)
    result = _result(answer, call_id, session, None if context.session_token else session.token)
    result["decisions"] = answer.decisions
    failure = answer.response.failure
    if failure is None:
        return result, 200
    error = _error(failure)
    result["error"] = error.wire
    if error.status == 202 and answer.key:
        pending = await context.sessions.runtime.confirmations.for_call(session.id, answer.key)
        result["confirmation"] = _confirmation_card(pending, session) if pending else None
    return result, error.status


def _idempotency_key(context: RequestContext, body: ExecuteBody) -> str | None:
    given = _key_header(context, IDEMPOTENCY_KEY)
    if given is not None and body.call_id not in (None, given):
        raise HttpError(
            400,
            "invalid",
            f"`call_id` and {IDEMPOTENCY_KEY} differ; send only one, or the same value in both.",
        )
    return body.call_id if given is None else given


def _turn(context: RequestContext) -> str | None:
    return _key_header(context, TURN)


def _key_header(context: RequestContext, name: str) -> str | None:
    given = context.request.headers.get(name)
    if given is not None and not re.fullmatch(_KEY_PATTERN, given):
        raise HttpError(400, "invalid", f"{name} must have 1 to 200 visible ASCII characters.")
    return given


async def _session(context: RequestContext, key: str | None) -> Session:
    """Return the session that the request names, or a session of the user for this call alone."""
    if context.session_token is not None:
        return await context.session()
    sessions, identity = context.sessions, context.identity
    if sessions.draining or identity.session:
        await sessions.admission.admit(identity)
    if key is None:
        tool_id = context.request.path_params["tool"]
        return await sessions.direct_calls.open(tool_id, **_session_fields(identity))
    session_id, secret = _derive_session(identity.user, key)
    try:
        stored = await Session.resume(session_id, sessions.runtime.store)
    except SessionFormatError as error:
        raise SessionRefused(UNKNOWN_SESSION, str(error)) from None
    if stored is None:
        # Saved before the call runs, because a repetition may use the session at the same time.
        return await sessions.runtime.open_session(
            **_session_fields(identity), session_id=session_id, secret=secret
        )
    check_access(stored, secret, identity)
    sessions.runtime.repin(stored)
    return stored


def _session_fields(identity: Identity) -> dict[str, Any]:
    """Return the mode and the user of a session for a call."""
    return {"mode": identity.mode or "text", **identity.session_fields}


def _derive_session(user: str, key: str) -> tuple[str, str]:
    """Return the id and the secret of the session for a user's calls under a key.

    They are derived from the key, so that every repetition finds the same session, on every host and at the
    same time, and a client that lost the first response gets the session's token again.
    """
    session_id = hashlib.sha256(f"execute\n{user}\n{key}".encode()).hexdigest()[:32]
    return session_id, hmac.new(key.encode(), f"session\n{user}".encode(), "sha256").hexdigest()


def _call_id(session: Session, key: str | None) -> str:
    if key is None:
        return f"http-{os.urandom(12).hex()}"
    # In a session that was derived from the key, only a hash of the key is stored, because the secret of the
    # session is derived from the key too.
    derived = session.id == _derive_session(session.user or "", key)[0]
    return _hashed_call_id(key) if derived else _stable_call_id(key)


def _stable_call_id(key: str) -> str:
    """Return the key itself as the id of a call, or its hash if the key does not count as stable."""
    return key if is_stable(key) else _hashed_call_id(key)


def _hashed_call_id(key: str) -> str:
    """Return the id of a call whose key is not stored."""
    return f"key-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def _result(answer: CallResult, call_id: str, session: Session, token: str | None) -> dict[str, Any]:
    success = answer.sealed_success
    if success is not None:
        data, duration, is_ok = success.encoded_data, success.duration_ms, True
        output = orjson.loads(data) if data.startswith(b'"') else data.decode()
    else:
        envelope = orjson.loads(answer.wire)
        duration, is_ok = envelope["meta"]["duration"], envelope["ok"]
        output = _text(envelope["data"]) if is_ok else envelope["error"]["message"]
    result = {
        "success": is_ok,
        "output": output,
        "duration": duration,
        # The envelope is JSON already.
        "envelope": orjson.Fragment(answer.wire),
        "callId": call_id,
        "session": session.id,
    }
    return {**result, "token": token} if token else result


def _text(data: Any) -> str:
    return data if isinstance(data, str) else orjson.dumps(data).decode()


def _error(failure: Failure) -> HttpError:
    details = failure.details or {}
    status = STATUSES[failure.type]
    if details.get("stopped") == "timeout":
        status = 408
    seconds = details.get("retryAfterSeconds")
    return HttpError(
        status,
        failure.type.value.lower(),
        failure.message,
        suggestion=failure.suggestion,
        retry_after=seconds if isinstance(seconds, int | float) else None,
    )


def _confirmation_card(pending: PendingConfirmation, session: Session) -> dict[str, Any]:
    from jackfield_host.response_models import ConfirmationCard

    event = to_wire(pending.event(session))
    names = [str(field.alias) for field in ConfirmationCard.model_fields.values()]
    return {name: event[name] for name in names}


async def decide(context: RequestContext) -> Response:
    """Carry out the user's decision on a waiting call, and return the outcome of the call."""
    from jackfield_host.request_models import DecisionBody

    body = await context.body(DecisionBody)
    session = await context.session()
    answer = await context.sessions.resolve_confirmation(
        session, context.request.path_params["token"], approve=body.approve
    )
    if answer is None:
        code, message, suggestion = UNKNOWN_CONFIRMATION
        raise HttpError(404, code, message, suggestion=suggestion)
    state = state_of(answer.wire)
    envelope = orjson.loads(answer.wire)
    # A repeated decision gets the outcome; one that contradicts the first decision gets a conflict.
    status = 409 if answer.replayed and contradicts(state, approve=body.approve) else 200
    result: dict[str, Any] = {
        "approved": state not in (CallState.DECLINED, CallState.EXPIRED),
        "state": state.value,
        "tool": answer.tool_id,
        "callId": answer.call_id,
        "envelope": None if state is CallState.DECLINED else envelope,
    }
    if status == 409:
        result["error"] = HttpError(409, "already_decided", decided_before(state)).wire
    return CallResponse(result, status)


async def task(context: RequestContext) -> Response:
    """Return the state of one call."""
    session = await context.session(ended=True)
    asked = context.request.path_params["call_id"]
    for call_id in dict.fromkeys((asked, _stable_call_id(asked), _hashed_call_id(asked))):
        found = await _task(context, session, call_id)
        if found is not None:
            return CallResponse(found)
    raise HttpError(404, "unknown_call", "This session has made no such call in the last 24 hours.")


async def _task(context: RequestContext, session: Session, call_id: str) -> dict[str, Any] | None:
    """Return the state of a call from its claim, and its progress from its events."""
    events = await events_for_call(session, context.sessions.runtime.store, call_id)
    status = await _status(context, session, call_id, events)
    if status is None or (status.state is CallState.NEVER_RUN and not events and status.wire is None):
        return None
    found = {"callId": call_id, "tool": "", **_progress(events), "state": status.state.value}
    if status.wire is not None or status.state is CallState.RUNNING:
        # The events may report a doubt that has since been settled.
        found = {name: value for name, value in found.items() if name not in ("data", "error")}
    if status.pending is not None:
        found["tool"] = status.pending.tool_id
        if status.state is CallState.WAITING:
            found["confirmation"] = _confirmation_card(status.pending, session)
        if status.state is CallState.EXPIRED:
            found["endedAt"] = status.pending.expires_at
    if status.state is CallState.IN_DOUBT:
        found["error"] = _error_details(in_doubt().to_wire()["error"])
    if status.wire is not None:
        found |= _outcome(status.wire)
    return found


async def _status(
    context: RequestContext, session: Session, call_id: str, events: list[Event]
) -> CallStatus | None:
    """Return the status from the claim of a call, or from its events if it has no stable id."""
    runtime = context.sessions.runtime
    asked = next((each for each in reversed(events) if each["type"] == "confirmation_required"), None)
    if asked is not None:
        pending = await runtime.confirmations.find(session, asked["token"])
        if pending is not None:
            return await runtime.ledger.status_of(pending)
    if is_stable(call_id):
        tool = runtime.registry.catalog(session.toolset).get(events[0]["tool"]) if events else None
        always_confirms = tool is not None and tool.manifest.requires_confirmation is True
        return await runtime.ledger.status(stable_key(session.id, call_id), always_confirms=always_confirms)
    return CallStatus(_state_from_events(events)) if events else None


def _state_from_events(events: Iterable[Event]) -> CallState:
    state = CallState.RUNNING
    for each in events:
        if each["type"] == "tool_complete":
            state = CallState.DONE
        elif each["type"] == "tool_error":
            state = CallState(each.get("state") or "failed")
    return state


def _progress(events: Iterable[Event]) -> dict[str, Any]:
    """Return when a call started and ended and its progress, from its events."""
    known: dict[str, Any] = {}
    for each in events:
        known["tool"] = each["tool"]
        match each["type"]:
            case "tool_start":
                known.setdefault("beganAt", each["at"])
            case "tool_progress":
                known["progress"] = {"message": each["message"], "fraction": each["fraction"]}
            case "tool_complete":
                known |= {"endedAt": each["at"], "data": each["data"]}
            case "tool_error" if each["errorType"] != "CONFIRMATION_REQUIRED":
                error = {
                    "type": each["errorType"],
                    "message": each["message"],
                    "suggestion": each["suggestion"],
                }
                known |= {"endedAt": each["at"], "error": _error_details(error)}
            case "confirmation_settled" if not each["approved"]:
                known["endedAt"] = each["at"]
    return known


def _outcome(wire: bytes) -> dict[str, Any]:
    """Return the data or the error of a call that is complete."""
    envelope = orjson.loads(truncate_result(wire, MAX_CHARACTERS))
    found = {"tool": envelope["meta"]["toolId"]}
    if envelope["ok"]:
        return {**found, "data": envelope["data"]}
    state = envelope["meta"].get("state")
    return {**found, "error": _error_details(envelope["error"], state)}


def _error_details(error: Event, code: str | None = None) -> dict[str, Any]:
    details = {"code": code or error["type"].lower(), "message": error["message"]}
    return {**details, "suggestion": error["suggestion"]} if error.get("suggestion") else details


EXECUTE = Endpoint(
    "POST",
    "/execute/{tool}",
    "Run a tool, under the same policies as a model's call.",
    execute,
    body="ExecuteBody",
    parameters=(
        EndpointParameter(
            "tool", "path", "The tool's id.", {"type": "string", "maxLength": 100}, required=True
        ),
        OPTIONAL_SESSION_HEADER,
        EndpointParameter(
            IDEMPOTENCY_KEY,
            "header",
            "Identifies the call: the same key returns the same outcome, or the same confirmation while the "
            "call is waiting.",
            {"type": "string", "pattern": f"^{_KEY_PATTERN}$"},
        ),
        EndpointParameter(
            TURN,
            "header",
            "Groups calls into one turn. Without it, every call is a separate turn, with its own budget.",
            {"type": "string", "pattern": f"^{_KEY_PATTERN}$"},
        ),
        EndpointParameter(
            LAST_EVENT_ID,
            "header",
            "With a stream: the id of the last event that the client has.",
            {"type": "string"},
        ),
    ),
    responses={
        200: (
            ResponseForm("The call succeeded.", "ExecuteResponse"),
            ResponseForm(
                "The events of the call, then `result`, for `Accept: text/event-stream`.",
                "StreamedEvent",
                EVENT_STREAM,
            ),
        ),
        202: (
            ResponseForm(
                "The call is waiting for confirmation: POST /confirmations/{token}.", "ExecuteResponse"
            ),
        ),
    },
    errors={
        400: "The arguments or the body are invalid.",
        404: "There is no such tool, or no such session.",
        408: "The tool timed out, or the body did not arrive.",
        409: "The key was used before for a different call, or the tool reports a conflict.",
        410: "The session has ended.",
        422: "The call cannot succeed with these arguments; repeating it does not help.",
        500: "The tool or the host failed with an internal error.",
    },
)

CONFIRMATIONS = Endpoint(
    "POST",
    "/confirmations/{token}",
    "Approve or decline a call that is waiting for confirmation.",
    decide,
    body="DecisionBody",
    parameters=(
        EndpointParameter(
            "token",
            "path",
            "The token from `confirmation_required`.",
            {"type": "string", "maxLength": 200},
            required=True,
        ),
        SESSION_HEADER,
    ),
    responses={
        200: (
            ResponseForm(
                "The outcome of the call; an approved call may still have failed.", "DecisionResponse"
            ),
        ),
        409: (
            ResponseForm(
                "A different decision had already been made, or this one came too late; `state` "
                "gives the outcome.",
                "DecisionResponse",
            ),
        ),
    },
    errors={
        404: "There is no such session, or no such confirmation in it.",
        410: "The session has ended.",
    },
)

TASKS = Endpoint(
    "GET",
    "/tasks/{call_id}",
    "The state of a call.",
    task,
    parameters=(
        EndpointParameter(
            "call_id",
            "path",
            "The id from `tool_start`, or the `Idempotency-Key` of the call.",
            {"type": "string", "maxLength": 200},
            required=True,
        ),
        SESSION_HEADER,
    ),
    responses={200: (ResponseForm("The state of the call.", "TaskResponse"),)},
    errors={404: "There is no such session, or no such call in it."},
)
