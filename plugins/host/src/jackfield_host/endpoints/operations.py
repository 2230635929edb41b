"""`/sessions`, `/audit`, `/stats` and `/registry/diff`: what whoever runs the host looks at."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from jackfield_sessions.archive import StoredSession, find, recent_sessions, session_record
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import Operation, Parameter, Said
from jackfield_host.endpoints.visit import OPERATOR, Visit, is_operator, not_operator
from jackfield_host.errors import HttpError
from jackfield_host.operations.comparison import comparison
from jackfield_host.operations.figures import SAMPLE_SECONDS, decisions, metrics_of, tools, totals
from jackfield_host.operations.watchers import recording
from jackfield_host.transcripts import as_json_lines, as_markdown
from jackfield_host.wire.operations import (
    AuditAnswer,
    ConversationList,
    RegistryDifference,
    Stats,
    TranscriptAnswer,
)

MOST = 500
"""How many sessions or lines one request may ask for."""

USUAL = 100

FORMS = {
    "json": ("application/json", ""),
    "markdown": ("text/markdown", "md"),
    "jsonl": ("application/x-ndjson", "jsonl"),
}
"""The forms of a transcript: what each is, and how the name of its file ends."""

_INSTALL = "Install jackfield-observability and run `jackfield build`."


def operates(visit: Visit) -> bool:
    """Whether the request comes from an operator."""
    return is_operator(visit.house, visit.identity)


def check_operates(visit: Visit) -> None:
    """Let operators alone go on."""
    if not operates(visit):
        raise not_operator()


async def sessions(visit: Visit) -> Response:
    """The latest conversations: one's own, and an operator's all."""
    everybodys = operates(visit)
    limit = asked_limit(visit)
    store = visit.sessions.runtime.store
    if visit.identity.session is not None:
        own = await find(store, visit.identity.session)
        found, complete = [own] if own else [], True
    else:
        found, complete = await recent_sessions(store, limit, None if everybodys else visit.identity.user)
    return JSONResponse(
        {
            "everybodys": everybodys,
            "complete": complete,
            "sessions": [_conversation(visit, each) for each in found],
        }
    )


async def transcript(visit: Visit) -> Response:
    """What was said in a conversation, to look at or to take away."""
    form = _choice(visit, "format", tuple(FORMS)) or "json"
    session_id = visit.request.path_params["session"]
    store = visit.sessions.runtime.store
    kept = await find(store, session_id)
    if kept is None or not _may_read(visit, kept):
        raise HttpError(404, "unknown_session", "There is no such session; transcripts are kept for 7 days.")
    lines = await session_record(store, session_id)
    if form == "json":
        return JSONResponse({"session": _conversation(visit, kept), "lines": lines})
    write = as_markdown if form == "markdown" else as_json_lines
    media, ending = FORMS[form]
    return Response(
        "".join(f"{line}\n" for line in write(kept, lines)),
        media_type=media,
        headers={"Content-Disposition": f'attachment; filename="session-{kept.id}.{ending}"'},
    )


def _may_read(visit: Visit, kept: StoredSession) -> bool:
    if visit.identity.session not in (None, kept.id):
        return False
    return operates(visit) or kept.user == visit.identity.user


def _conversation(visit: Visit, kept: StoredSession) -> dict[str, Any]:
    live = visit.sessions.live.get(kept.id)
    return {
        "session": kept.id,
        "user": kept.user,
        "mode": kept.mode,
        "state": live.session.state.value if live else kept.state,
        "here": live is not None,
        "heard": live is not None and live.hub.has_clients,
        "beganAt": kept.began,
        "lastAt": kept.last,
        "turns": kept.turns,
        "registry": kept.registry,
    }


async def audit(visit: Visit) -> Response:
    """The latest calls, from the record of the observer `audit`."""
    check_operates(visit)
    limit = asked_limit(visit)
    ok = _choice(visit, "ok", ("true", "false"))
    given = visit.request.query_params
    kept = recording(visit.sessions.runtime.orchestrator.observers)
    if kept is None:
        raise HttpError(404, "no_audit", "Nothing is recorded here.", suggestion=_INSTALL)
    tail = await asyncio.to_thread(
        kept.tail,
        limit,
        tool=given.get("tool") or None,
        session=given.get("session") or None,
        ok=None if ok is None else ok == "true",
    )
    return JSONResponse({"complete": tail.complete, "lines": tail.lines})


async def stats(visit: Visit) -> Response:
    """The figures of this process, and how they have grown."""
    check_operates(visit)
    trend, sessions = visit.house.trend, visit.sessions
    if trend.counting is None:
        raise HttpError(404, "no_metrics", "Nothing is counted here.", suggestion=_INSTALL)
    counted = await asyncio.to_thread(metrics_of, trend.counting)
    return JSONResponse(
        {
            "uptime": round(time.monotonic() - visit.house.began, 3),
            "open": len(sessions.live),
            "totals": totals(counted),
            "tools": tools(counted, sessions.runtime.registry),
            "decisions": decisions(counted),
            "sampleSeconds": SAMPLE_SECONDS,
            "samples": list(trend.samples),
        }
    )


async def registry_diff(visit: Visit) -> Response:
    """What changed since the registry before this one."""
    found = await asyncio.to_thread(comparison, visit.sessions.runtime.registry)
    if found is None:
        raise HttpError(
            404,
            "no_previous",
            "No other registry is kept to compare with.",
            suggestion="`jackfield build` keeps the one before when something has changed.",
        )
    return JSONResponse(found)


def asked_limit(visit: Visit) -> int:
    """The most that a request wants to be told."""
    given = visit.request.query_params.get("limit", str(USUAL))
    if not (given.isascii() and given.isdecimal() and len(given) <= 4 and 1 <= int(given) <= MOST):
        raise HttpError(400, "invalid", f"The query, at limit: a number from 1 to {MOST} is wanted.")
    return int(given)


def _choice(visit: Visit, name: str, known: tuple[str, ...]) -> str | None:
    given = visit.request.query_params.get(name)
    if given is not None and given not in known:
        raise HttpError(400, "invalid", f"The query, at {name}: one of {', '.join(known)} is wanted.")
    return given


LIMIT = Parameter(
    "limit",
    "query",
    f"How many at most; {USUAL} when left out.",
    {"type": "integer", "minimum": 1, "maximum": MOST},
)
"""The parameter that `asked_limit` reads."""

OPERATORS_ONLY = {403: f"Where tokens are in use, this is for the role `{OPERATOR}`."}
"""How an endpoint fails that calls `check_operates`."""

SESSIONS = Operation(
    "GET",
    "/sessions",
    "The latest conversations: your own, or all for an operator.",
    sessions,
    parameters=(LIMIT,),
    answers={200: (Said("Conversations, the latest first.", ConversationList),)},
    fails={400: "The query is wrong; the message says where."},
)

TRANSCRIPT = Operation(
    "GET",
    "/sessions/{session}/transcript",
    "What was said and done in a conversation.",
    transcript,
    parameters=(
        Parameter(
            "session", "path", "The session's id.", {"type": "string", "maxLength": 100}, required=True
        ),
        Parameter("format", "query", "The form; `json` when left out.", {"type": "string", "enum": [*FORMS]}),
    ),
    answers={
        200: (
            Said("The transcript.", TranscriptAnswer),
            Said("The same for people, to be saved.", media="text/markdown"),
            Said("The same as JSON lines, to be saved.", media="application/x-ndjson"),
        )
    },
    fails={400: "There is no such form.", 404: "There is no such session, or it is somebody else's."},
)

AUDIT = Operation(
    "GET",
    "/audit",
    "The latest calls, from the audit.",
    audit,
    parameters=(
        LIMIT,
        Parameter("tool", "query", "Only calls of this tool.", {"type": "string"}),
        Parameter("session", "query", "Only calls of this session, by its id.", {"type": "string"}),
        Parameter("ok", "query", "Only those that did or did not succeed.", {"type": "boolean"}),
    ),
    answers={200: (Said("Lines of the audit, the latest first.", AuditAnswer),)},
    fails={
        400: "The query is wrong; the message says where.",
        404: "The observer `audit` is not installed.",
        **OPERATORS_ONLY,
    },
)

STATS = Operation(
    "GET",
    "/stats",
    "The figures of this process, and how they have grown in the last half hour.",
    stats,
    answers={200: (Said("The figures.", Stats),)},
    fails={404: "The observer `metrics` is not installed.", **OPERATORS_ONLY},
)

DIFFERENCE = Operation(
    "GET",
    "/registry/diff",
    "What changed since the registry before, or would change with a restart.",
    registry_diff,
    answers={200: (Said("The changes.", RegistryDifference),)},
    fails={404: "No other registry is kept."},
)
