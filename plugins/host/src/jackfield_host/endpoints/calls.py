"""`/calls`: calls in doubt, which only a person can settle."""

from __future__ import annotations

from typing import Any

import orjson
from jackfield.ledger import DoubtfulCall
from jackfield.outcomes import state_of
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import Operation, Said
from jackfield_host.endpoints.operations import LIMIT, OPERATORS_ONLY, asked_limit, check_operates
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError
from jackfield_host.wire.bodies import SettleBody
from jackfield_host.wire.operations import CallsInDoubt, SettledCall


async def calls(visit: Visit) -> Response:
    """The calls in doubt of every host that uses this store."""
    check_operates(visit)
    limit = asked_limit(visit)
    found = sorted(
        await visit.sessions.runtime.ledger.in_doubt(), key=lambda each: (each.claimed_at, each.key)
    )
    shown = [_shown(each) for each in found[:limit]]
    return JSONResponse({"complete": len(found) <= limit, "calls": shown})


async def settle(visit: Visit) -> Response:
    """Record what the operator found out about one of them."""
    check_operates(visit)
    body = await visit.body(SettleBody)
    wire = await visit.sessions.runtime.settle_call(
        body.key, ran=body.ran, by=visit.identity.user, data=body.data
    )
    if wire is None:
        raise HttpError(
            404,
            "not_in_doubt",
            "No call in doubt has this key. Somebody else may have settled it.",
            suggestion="GET /calls lists the calls in doubt.",
        )
    return JSONResponse({"key": body.key, "state": state_of(wire).value, "envelope": orjson.loads(wire)})


def _shown(call: DoubtfulCall) -> dict[str, Any]:
    return {
        "key": call.key,
        "tool": call.tool_id,
        "session": call.session_id,
        "user": call.user,
        "callId": call.call_id,
        "arguments": call.arguments,
        "beganAt": call.claimed_at,
    }


CALLS = Operation(
    "GET",
    "/calls",
    "The calls in doubt: their host stopped while they ran, so they may or may not have taken effect.",
    calls,
    parameters=(LIMIT,),
    answers={200: (Said("The calls in doubt, the oldest first.", CallsInDoubt),)},
    fails={400: "The query is wrong; the message says where.", **OPERATORS_ONLY},
)

SETTLE = Operation(
    "POST",
    "/calls/settle",
    "Record whether a call in doubt took effect. Of several operators, the first one succeeds.",
    settle,
    body=SettleBody,
    answers={200: (Said("The call, with the outcome it has from now on.", SettledCall),)},
    fails={
        400: "The body is wrong; the message says where.",
        404: "No call in doubt has this key; somebody else may have settled it.",
        **OPERATORS_ONLY,
    },
)
