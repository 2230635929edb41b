"""`GET /tasks/{call_id}`: what became of a call, from its claim; how far it came, from its events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from jackfield.call_events import MAX_CHARACTERS
from jackfield.ledger import CallStatus, is_stable, stable_key
from jackfield.outcomes import CallState, in_doubt
from jackfield.session.session import Session
from jackfield.truncation import truncate_result
from jackfield_sessions.events import events_for_call
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.execute import call_id_of, card, hashed_call_id
from jackfield_host.endpoints.operation import NAMED, Operation, Parameter, Said
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError
from jackfield_host.wire.answers import Task

Message = dict[str, Any]


async def task(visit: Visit) -> Response:
    """The state of one call."""
    session = await visit.session(ended=True)
    asked = visit.request.path_params["call_id"]
    for call_id in dict.fromkeys((asked, call_id_of(asked), hashed_call_id(asked))):
        found = await _task(visit, session, call_id)
        if found is not None:
            return JSONResponse(found)
    raise HttpError(404, "unknown_call", "This session has made no such call in the last 24 hours.")


async def _task(visit: Visit, session: Session, call_id: str) -> dict[str, Any] | None:
    told = await events_for_call(session, visit.sessions.runtime.store, call_id)
    status = await _status(visit, session, call_id, told)
    if status is None or (status.state is CallState.NEVER_RUN and not told and status.wire is None):
        return None
    found = {"callId": call_id, "tool": "", **_progress(told), "state": status.state.value}
    if status.wire is not None or status.state is CallState.RUNNING:
        # Events may tell of a doubt that was settled since.
        found = {name: value for name, value in found.items() if name not in ("data", "error")}
    if status.pending is not None:
        found["tool"] = status.pending.tool_id
        if status.state is CallState.WAITING:
            found["confirmation"] = card(status.pending, session)
        if status.state is CallState.EXPIRED:
            found["endedAt"] = status.pending.expires_at
    if status.state is CallState.IN_DOUBT:
        found["error"] = _fault(in_doubt().to_wire()["error"])
    if status.wire is not None:
        found |= _outcome(status.wire)
    return found


async def _status(visit: Visit, session: Session, call_id: str, told: list[Message]) -> CallStatus | None:
    """What the claim of a call says; of a call without a stable id only its events are known."""
    runtime = visit.sessions.runtime
    asked = next((each for each in reversed(told) if each["type"] == "confirmation_required"), None)
    if asked is not None:
        pending = await runtime.confirmations.find(session, asked["token"])
        if pending is not None:
            return await runtime.ledger.status_of(pending)
    if is_stable(call_id):
        tool = runtime.registry.get(told[0]["tool"]) if told else None
        always_confirms = tool is not None and tool.manifest.requires_confirmation is True
        return await runtime.ledger.status(stable_key(session.id, call_id), always_confirms=always_confirms)
    return CallStatus(_state_told(told)) if told else None


def _state_told(told: Iterable[Message]) -> CallState:
    """What the events of one call come to, in their order."""
    state = CallState.RUNNING
    for each in told:
        if each["type"] == "tool_complete":
            state = CallState.DONE
        elif each["type"] == "tool_error":
            state = CallState(each.get("state") or "failed")
    return state


def _progress(told: Iterable[Message]) -> dict[str, Any]:
    """When a call began and ended and how far it came, as its events say."""
    known: dict[str, Any] = {}
    for each in told:
        known["tool"] = each["tool"]
        match each["type"]:
            case "tool_start":
                known.setdefault("beganAt", each["at"])
            case "tool_progress":
                known["progress"] = {"message": each["message"], "fraction": each["fraction"]}
            case "tool_complete":
                known |= {"endedAt": each["at"], "data": each["data"]}
            case "tool_error" if each["errorType"] != "CONFIRMATION_REQUIRED":
                error = {"type": each["errorType"], "message": each["message"]}
                known |= {"endedAt": each["at"], "error": _fault({**error, "suggestion": each["suggestion"]})}
            case "confirmation_settled" if not each["approved"]:
                known["endedAt"] = each["at"]
    return known


def _outcome(wire: bytes) -> dict[str, Any]:
    """The data or the error of a call that has its outcome."""
    envelope = orjson.loads(truncate_result(wire, MAX_CHARACTERS))
    found = {"tool": envelope["meta"]["toolId"]}
    if envelope["ok"]:
        return {**found, "data": envelope["data"]}
    state = envelope["meta"].get("state")
    return {**found, "error": _fault(envelope["error"], state)}


def _fault(error: Message, code: str | None = None) -> dict[str, Any]:
    fault = {"code": code or error["type"].lower(), "message": error["message"]}
    return {**fault, "suggestion": error["suggestion"]} if error.get("suggestion") else fault


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
