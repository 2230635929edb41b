"""`POST /confirmations/{token}`: the user's word on a call that waits for it."""

from __future__ import annotations

import orjson
from jackfield.orchestrator import Answer
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import NAMED, Operation, Parameter, Said
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError
from jackfield_host.wire.answers import Decided
from jackfield_host.wire.bodies import DecisionBody


async def decide(visit: Visit) -> Response:
    """Run the call, or let it be."""
    body = await visit.body(DecisionBody)
    session = await visit.session()
    settled = await visit.switchboard.desk.decide(
        session, visit.request.path_params["token"], approve=body.approve
    )
    if settled is None:
        raise HttpError(
            404,
            "unknown_confirmation",
            "Nothing was run: this confirmation is unknown, used or expired.",
            suggestion="Ask for it again.",
        )
    return JSONResponse(
        {
            "approved": body.approve,
            "tool": settled.tool_id,
            "callId": settled.call_id,
            "envelope": orjson.loads(settled.wire) if isinstance(settled, Answer) else None,
        }
    )


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
    answers={200: (Said("What became of the call; an approved one may still have failed.", Decided),)},
    fails={
        404: "There is no such session, or nothing in it waits under this token.",
        410: "The session has ended.",
    },
)
