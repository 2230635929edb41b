"""`POST /confirmations/{token}`: the user's decision about a waiting call."""

from __future__ import annotations

from typing import Any

import orjson
from jackfield.outcomes import CallState, state_of
from jackfield_sessions.late_outcomes import UNKNOWN_CONFIRMATION, contradicts, decided_before
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import NAMED, Operation, Parameter, Said
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError
from jackfield_host.wire.answers import Decided
from jackfield_host.wire.bodies import DecisionBody


async def decide(visit: Visit) -> Response:
    """Carry out a decision, and answer with what became of the call."""
    body = await visit.body(DecisionBody)
    session = await visit.session()
    answer = await visit.sessions.resolve_confirmation(
        session, visit.request.path_params["token"], approve=body.approve
    )
    if answer is None:
        code, message, suggestion = UNKNOWN_CONFIRMATION
        raise HttpError(404, code, message, suggestion=suggestion)
    state = state_of(answer.wire)
    envelope = orjson.loads(answer.wire)
    # A decision that is repeated gets the outcome; one that contradicts what was decided is told so.
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
    return JSONResponse(result, status)


CONFIRMATIONS = Operation(
    "POST",
    "/confirmations/{token}",
    "Approve or decline a call that waits for its user.",
    decide,
    body=DecisionBody,
    parameters=(
        Parameter(
            "token",
            "path",
            "What `confirmation_required` carried.",
            {"type": "string", "maxLength": 200},
            required=True,
        ),
        NAMED,
    ),
    answers={
        200: (Said("What became of the call; an approved one may still have failed.", Decided),),
        409: (Said("Something else was decided before, or too late to count: `state` says what.", Decided),),
    },
    fails={
        404: "There is no such session, or no such confirmation in it.",
        410: "The session has ended.",
    },
)
