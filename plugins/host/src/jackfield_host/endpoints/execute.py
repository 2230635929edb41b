"""`POST /execute/{tool}`: a call that the user's client makes, governed like a model's."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any, NamedTuple

import orjson
from jackfield import ErrorType
from jackfield.contract.call import ToolCall
from jackfield.contract.response import Failure
from jackfield.orchestrator import Answer
from jackfield.session.session import Session
from jackfield.store import ClaimState
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import MAY_BE_NAMED, Operation, Parameter, Said
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError, waiting
from jackfield_host.talks import record
from jackfield_host.talks.briefing import NOWHERE
from jackfield_host.wire.answers import Card, Result
from jackfield_host.wire.bodies import ExecuteBody

KEY = "Idempotency-Key"

KEPT_SECONDS = 24 * 3600.0
"""For how long a key without a session leads to the session that was made for it."""

LOOK_SECONDS = 5.0
"""How long to wait for another request with the same key that is just making the session."""

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


class _Named(NamedTuple):
    """A session for a call, and its token if it was made for it."""

    session: Session
    token: str | None = None


async def execute(visit: Visit) -> Response:
    """Run a call, and answer with what became of it."""
    body = await visit.body(ExecuteBody)
    key = _key(visit, body)
    session, token = await _session(visit, key)
    call_id = call_id_of(key) if key else f"http-{os.urandom(12).hex()}"
    call = ToolCall(visit.request.path_params["tool"], orjson.dumps(body.arguments), call_id)
    store = visit.switchboard.runtime.store
    again = bool(key and await record.of_call(session, store, call_id))
    answer = await visit.switchboard.desk.run(session, call, again=again)
    result = _result(answer, call_id, session, token)
    result["decisions"] = visit.house.decisions.of(session.id, call_id)
    failure = answer.response.failure
    if failure is None:
        return JSONResponse(result)
    error = _error(failure)
    result["error"] = error.wire
    if error.status == 202:
        result["confirmation"] = _card(await record.card_of(session, store, call_id))
    return JSONResponse(result, error.status, headers=waiting(error.retry_after))


def call_id_of(key: str) -> str:
    """The call's name: the client's own, or one after it where that would not be taken as lasting."""
    if len(key) > 8 and "temp" not in key:
        return key
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


async def _session(visit: Visit, key: str | None) -> _Named:
    """The session that is named, or one of the user's own for this call."""
    if visit.token is not None:
        return _Named(await visit.session())
    if visit.switchboard.draining or visit.identity.session:
        await visit.switchboard.admission.admit(visit.identity)
    if key is None:
        return await _made(visit)
    store = visit.switchboard.runtime.store
    name = hashlib.sha256(f"{visit.identity.user}\n{key}".encode()).hexdigest()
    claimed = f"execute/{name}"
    claim = await store.claim(claimed, b"session", ttl=KEPT_SECONDS)
    # Whoever died while making it has run nothing in it.
    if claim.state is ClaimState.RUN or (claim.state is ClaimState.IN_DOUBT and await store.reclaim(claimed)):
        return await _made_for(visit, claimed)
    if claim.state is ClaimState.RUNNING:
        claim = await store.outcome(claimed, within=LOOK_SECONDS)
    kept = claim.result and await Session.resume(claim.result.decode(), store)
    if not kept:
        raise HttpError(409, "key_in_use", f"{KEY} was used before, and its session is gone.")
    return _Named(kept)


async def _made_for(visit: Visit, claimed: str) -> _Named:
    store = visit.switchboard.runtime.store
    try:
        made = await _made(visit)
    except BaseException:
        await store.release(claimed)
        raise
    await store.complete(claimed, made.session.id.encode())
    return made


async def _made(visit: Visit) -> _Named:
    switchboard, identity = visit.switchboard, visit.identity
    mode = identity.mode or "text"
    session = await switchboard.briefing.session(mode, identity, NOWHERE, switchboard.transport)
    return _Named(session, session.token)


def _result(answer: Answer, call_id: str, session: Session, token: str | None) -> dict[str, Any]:
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


def _card(told: dict[str, Any] | None) -> dict[str, Any] | None:
    return told and {name: told[name] for name in (*Card.model_fields,) if name in told}


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
            "Names the call: the same name again gives the first answer again.",
            {"type": "string", "pattern": r"^[\x21-\x7e]{1,200}$"},
        ),
    ),
    answers={
        200: (Said("It did what it was asked to.", Result),),
        202: (Said("It waits for the user's word: POST /confirmations/{token}.", Result),),
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
