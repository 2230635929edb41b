"""`GET /tasks/{call_id}`: how far a call has come, from the events of its session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.execute import call_id_of
from jackfield_host.endpoints.operation import NAMED, Operation, Parameter, Said
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError
from jackfield_host.talks import record
from jackfield_host.wire.answers import Task


async def task(visit: Visit) -> Response:
    """The state of one call."""
    session = await visit.session(ended=True)
    store = visit.switchboard.runtime.store
    asked = visit.request.path_params["call_id"]
    told = await record.of_call(session, store, asked) or await record.of_call(
        session, store, call_id_of(asked)
    )
    if not told:
        raise HttpError(404, "unknown_call", "This session has made no such call in the last 24 hours.")
    state = state_of(told)
    until = max(each.get("expires_at", 0.0) for each in told)
    if state["state"] == "waiting" and until <= store.now():
        state |= {"state": "failed", "endedAt": until, "error": _EXPIRED}
    return JSONResponse(state)


def state_of(told: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What the events of one call come to, in their order."""
    state: dict[str, Any] = {"state": "running"}
    for each in told:
        state |= {"callId": each["callId"], "tool": each["tool"]}
        match each["type"]:
            case "tool_start":
                state.setdefault("beganAt", each["at"])
            case "tool_progress":
                state["progress"] = {"message": each["message"], "fraction": each["fraction"]}
            case "confirmation_required":
                state["state"] = "waiting"
            case "confirmation_settled":
                state["state"] = "running" if each["approved"] else "failed"
                if not each["approved"]:
                    state |= {"endedAt": each["at"], "error": _DECLINED}
            case "tool_complete":
                state |= {"state": "done", "endedAt": each["at"], "data": each["data"]}
            case "tool_error" if each["errorType"] != "CONFIRMATION_REQUIRED":
                error = {"code": each["errorType"].lower(), "message": each["message"]}
                if each["suggestion"]:
                    error["suggestion"] = each["suggestion"]
                state |= {"state": "failed", "endedAt": each["at"], "error": error}
    return state


_EXPIRED = {"code": "expired", "message": "The user did not decide in time; it was not run."}

_DECLINED = {"code": "declined", "message": "The user declined it; it was not run."}


TASKS = Operation(
    "GET",
    "/tasks/{call_id}",
    "How far a call has come.",
    task,
    parameters=(
        Parameter(
            "call_id",
            "path",
            "As in `tool_start`, or the `Idempotency-Key` it was made with.",
            {"type": "string", "maxLength": 200},
            required=True,
        ),
        NAMED,
    ),
    answers={200: (Said("The call as it stands.", Task),)},
    fails={404: "There is no such session, or no such call in it."},
)
