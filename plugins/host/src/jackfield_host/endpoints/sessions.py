"""`/sessions`: lists the sessions in the store, and returns their transcripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield_sessions.archive import StoredSession, find, recent_sessions, session_record
from jackfield_sessions.owners import SessionOwner, live_sessions
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import LIMIT, Endpoint, EndpointParameter, RequestContext, ResponseForm
from jackfield_host.errors import HttpError
from jackfield_host.transcripts import as_json_lines, as_markdown

FORMATS = {
    "json": ("application/json", ""),
    "markdown": ("text/markdown", "md"),
    "jsonl": ("application/x-ndjson", "jsonl"),
}
"""The formats of a transcript: media type and file extension."""


async def sessions(context: RequestContext) -> Response:
    """List the latest sessions: the user's own, or all for an operator."""
    limit = context.query_limit()
    store = context.sessions.runtime.store
    all_users = context.is_operator
    if context.identity.session is not None:
        own = await find(store, context.identity.session)
        found, complete = [own] if own else [], True
    else:
        found, complete = await recent_sessions(store, limit, None if all_users else context.identity.user)
    owners = await _owners(context)
    return JSONResponse(
        {
            "allUsers": all_users,
            "complete": complete,
            "sessions": [_summary(context, each, owners) for each in found],
        }
    )


async def transcript(context: RequestContext) -> Response:
    """Return the transcript of a session, as JSON or as a file."""
    form = context.query_choice("format", tuple(FORMATS)) or "json"
    session_id = context.request.path_params["session"]
    store = context.sessions.runtime.store
    stored = await find(store, session_id)
    if stored is None or not _may_read(context, stored):
        raise HttpError(404, "unknown_session", "There is no such session; transcripts are kept for 7 days.")
    lines = await session_record(store, session_id)
    if form == "json":
        return JSONResponse({"session": _summary(context, stored, await _owners(context)), "lines": lines})
    write = as_markdown if form == "markdown" else as_json_lines
    media_type, extension = FORMATS[form]
    return Response(
        "".join(f"{line}\n" for line in write(stored, lines)),
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="session-{stored.id}.{extension}"'},
    )


def _may_read(context: RequestContext, stored: StoredSession) -> bool:
    if context.identity.session not in (None, stored.id):
        return False
    return context.is_operator or stored.user == context.identity.user


async def _owners(context: RequestContext) -> dict[str, SessionOwner]:
    """Return the owner of each live session."""
    sessions = context.sessions
    owners = await live_sessions(sessions.runtime.store, sessions.runtime.hosts)
    for session_id, live in sessions.live.items():
        # The store may not have the latest state of this host's own sessions.
        own, known = sessions.owners.owner(live), owners.get(session_id)
        if known is None or own.epoch >= known.epoch:
            owners[session_id] = own
    return owners


def _summary(
    context: RequestContext, stored: StoredSession, owners: Mapping[str, SessionOwner]
) -> dict[str, Any]:
    live, owner = context.sessions.live.get(stored.id), owners.get(stored.id)
    return {
        "session": stored.id,
        "user": stored.user,
        "mode": stored.mode,
        "state": live.session.state.value if live else stored.state,
        "live": owner is not None,
        "connected": owner is not None and owner.connected,
        "host": owner.host if owner else None,
        "beganAt": stored.began,
        "lastAt": stored.last,
        "turns": stored.turns,
        "registry": stored.registry,
    }


SESSIONS = Endpoint(
    "GET",
    "/sessions",
    "The latest sessions: your own, or all for an operator.",
    sessions,
    parameters=(LIMIT,),
    responses={200: (ResponseForm("Sessions, the latest first.", "SessionList"),)},
    errors={400: "The query is invalid; the message says where."},
)

TRANSCRIPT = Endpoint(
    "GET",
    "/sessions/{session}/transcript",
    "The transcript of a session.",
    transcript,
    parameters=(
        EndpointParameter(
            "session", "path", "The session's id.", {"type": "string", "maxLength": 100}, required=True
        ),
        EndpointParameter(
            "format", "query", "The format; `json` by default.", {"type": "string", "enum": [*FORMATS]}
        ),
    ),
    responses={
        200: (
            ResponseForm("The transcript.", "TranscriptResponse"),
            ResponseForm("The transcript as a Markdown file.", media_type="text/markdown"),
            ResponseForm("The transcript as a file of JSON lines.", media_type="application/x-ndjson"),
        )
    },
    errors={400: "There is no such format.", 404: "There is no such session, or it is another user's."},
)
