"""`POST /execute/{tool}`: a call that the user's client makes, governed like a model's."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from typing import Any

import orjson
from jackfield import ErrorType
from jackfield.confirmation import PendingConfirmation
from jackfield.contract.tool import Failure, ToolCall
from jackfield.ledger import is_stable
from jackfield.orchestrator import CallResult
from jackfield.protocol.close_codes import UNKNOWN_SESSION
from jackfield.protocol.codec import to_wire
from jackfield.session.session import Session, SessionFormatError
from jackfield_sessions.admission import SessionRefused, check_access
from jackfield_sessions.events import events_for_call
from jackfield_sessions.session_factory import NO_LOCALE
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import MAY_BE_NAMED, Operation, Parameter, Said
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError, waiting
from jackfield_host.wire.answers import Card, Result
from jackfield_host.wire.bodies import ExecuteBody

KEY = "Idempotency-Key"

GROUP = "Jackfield-Turn"
"""The header by which a client groups calls into one turn."""

_KEY_FORM = re.compile(r"[\x21-\x7e]{1,200}")

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
"""The status of a call that failed, by its type; one that ran out of time has 408."""


async def execute(visit: Visit) -> Response:
    """Run a call, and answer with what became of it."""
    body = await visit.body(ExecuteBody)
    key, group = _key(visit, body), _group(visit)
    session = await _session(visit, key)
    call_id = _call_id(session, key)
    call = ToolCall(visit.request.path_params["tool"], orjson.dumps(body.arguments), call_id)
    runtime = visit.sessions.runtime
    again = bool(key and await events_for_call(session, runtime.store, call_id))
    answer = await visit.sessions.direct_calls.run(session, call, again=again, group=group)
    result = _result(answer, call_id, session, None if visit.token else session.token)
    result["decisions"] = answer.decisions
    failure = answer.response.failure
    if failure is None:
        return JSONResponse(result)
    error = _error(failure)
    result["error"] = error.wire
    if error.status == 202 and answer.key:
        pending = await runtime.confirmations.for_call(session.id, answer.key)
        result["confirmation"] = card(pending, session) if pending else None
    return JSONResponse(result, error.status, headers=waiting(error.retry_after))


def _call_id(session: Session, key: str | None) -> str:
    if key is None:
        return f"http-{os.urandom(12).hex()}"
    # In the key's own session, because its secret is derived from the key, the key is kept only as a hash.
    own = session.id == _derived(session.user or "", key)[0]
    return hashed_call_id(key) if own else call_id_of(key)


def _derived(user: str, key: str) -> tuple[str, str]:
    """The id and the secret of the session for the calls of a user under a key.

    Derived, so that every delivery of a key finds the same session, on every host and at the same moment, and
    a client that lost the first answer gets the session's token again.
    """
    named = hashlib.sha256(f"execute\n{user}\n{key}".encode()).hexdigest()[:32]
    return named, hmac.new(key.encode(), f"session\n{user}".encode(), "sha256").hexdigest()


def call_id_of(key: str) -> str:
    """The call's id: the client's own key, or a hash of it where the key would not be taken as stable."""
    return key if is_stable(key) else hashed_call_id(key)


def hashed_call_id(key: str) -> str:
    """The id of a call whose key is not kept."""
    return f"key-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def _key(visit: Visit, body: ExecuteBody) -> str | None:
    given = visit.request.headers.get(KEY)
    if given is None:
        return body.call_id
    if not _KEY_FORM.fullmatch(given):
        raise HttpError(400, "invalid", f"{KEY} has 1 to 200 visible characters of ASCII.")
    if body.call_id not in (None, given):
        raise HttpError(400, "invalid", f"`call_id` and {KEY} name the same thing, and differ.")
    return given


def _group(visit: Visit) -> str | None:
    given = visit.request.headers.get(GROUP)
    if given is not None and not _KEY_FORM.fullmatch(given):
        raise HttpError(400, "invalid", f"{GROUP} has 1 to 200 visible characters of ASCII.")
    return given


async def _session(visit: Visit, key: str | None) -> Session:
    """The session that is named, or one of the user's own for this call."""
    if visit.token is not None:
        return await visit.session()
    sessions, identity = visit.sessions, visit.identity
    if sessions.draining or identity.session:
        await sessions.admission.admit(identity)
    if key is None:
        return await _opened(visit)
    session_id, secret = _derived(identity.user, key)
    try:
        kept = await Session.resume(session_id, sessions.runtime.store)
    except SessionFormatError as error:
        raise SessionRefused(UNKNOWN_SESSION, str(error)) from None
    if kept is None:
        return await _opened(visit, session_id=session_id, secret=secret)
    check_access(kept, secret, identity)
    return kept


async def _opened(visit: Visit, **named: str) -> Session:
    sessions, identity = visit.sessions, visit.identity
    mode = identity.mode or "text"
    return await sessions.factory.create(mode, identity, NO_LOCALE, sessions.transport, **named)


def _result(answer: CallResult, call_id: str, session: Session, token: str | None) -> dict[str, Any]:
    envelope = orjson.loads(answer.wire)
    result = {
        "success": envelope["ok"],
        "output": _text(envelope["data"]) if envelope["ok"] else envelope["error"]["message"],
        "duration": envelope["meta"]["duration"],
        "envelope": envelope,
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


def card(pending: PendingConfirmation, session: Session) -> dict[str, Any]:
    """What the user is asked to approve, as `Card` describes it."""
    event = to_wire(pending.event(session))
    return {name: event[name] for name in (str(field.alias) for field in Card.model_fields.values())}


EXECUTE = Operation(
    "POST",
    "/execute/{tool}",
    "Run a tool, under the same policies as a model's call.",
    execute,
    body=ExecuteBody,
    parameters=(
        Parameter("tool", "path", "The tool's id.", {"type": "string", "maxLength": 100}, required=True),
        MAY_BE_NAMED,
        Parameter(
            KEY,
            "header",
            "Names the call: the same key again gives the same outcome, or the same card while it waits.",
            {"type": "string", "pattern": r"^[\x21-\x7e]{1,200}$"},
        ),
        Parameter(
            GROUP,
            "header",
            "Groups calls into one turn. Without it every call is a turn of its own, with its own budget.",
            {"type": "string", "pattern": r"^[\x21-\x7e]{1,200}$"},
        ),
    ),
    answers={
        200: (Said("It did what it was asked to.", Result),),
        202: (Said("It waits for the user's decision: POST /confirmations/{token}.", Result),),
    },
    fails={
        400: "The arguments, or the body, are wrong.",
        404: "There is no such tool, or no such session.",
        408: "It ran out of time, or the body did not arrive.",
        409: "The name was used before for another call, or the world does not allow it.",
        410: "The session has ended.",
        422: "It cannot be done with these arguments, and trying again does not help.",
        500: "The tool broke, or the host failed.",
    },
)
