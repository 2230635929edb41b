"""`/sessions`: lists the sessions in the store with their transcripts, and lets users manage their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield_sessions.admission import owns
from jackfield_sessions.archive import (
    ENDED,
    StoredSession,
    delete_all,
    find,
    recent_sessions,
    rename,
    session_record,
)
from jackfield_sessions.owning_hosts import OwningHost, live_sessions
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

MAX_SEARCH = 200
"""The maximum length of a search, in characters."""


async def sessions(context: RequestContext) -> Response:
    """List the latest sessions: the user's own, or all for an operator."""
    limit, search = context.query_limit(), context.request.query_params.get("search", "")
    if len(search) > MAX_SEARCH:
        raise HttpError(
            400, "invalid", f"Invalid query parameter `search`: expected at most {MAX_SEARCH} characters."
        )
    store = context.sessions.runtime.store
    all_users = context.is_operator and context.query_choice("user", ("me",)) is None
    owners = await _owners(context)
    if context.identity.session is not None:
        own = await find(store, context.identity.session)
        found, complete = [own] if own else [], True
    else:
        user = None if all_users else context.identity.user
        found, complete = await recent_sessions(store, limit, user, live=owners, search=search)
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
        raise _unknown()
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


async def issue_token(context: RequestContext) -> Response:
    """Return a token that resumes a session of the user."""
    stored = await _own_session(context)
    context.check_mode(stored.mode)
    token = await context.sessions.issue_token(stored.id, context.identity)
    return JSONResponse({"session": stored.id, "mode": stored.mode, "token": token})


async def set_title(context: RequestContext) -> Response:
    """Give a session of the user a title."""
    from jackfield_host.request_models import TitleBody

    stored, body = await _own_session(context), await context.body(TitleBody)
    title = " ".join(body.title.split())
    await rename(context.sessions.runtime.store, stored.id, title)
    return JSONResponse(_summary(context, stored._replace(title=title), await _owners(context)))


async def delete(context: RequestContext) -> Response:
    """Delete a session of the user, on whichever host it is live."""
    stored = await _own_session(context)
    await delete_all(context.sessions.runtime.store, [stored])
    return JSONResponse({"session": stored.id})


async def _own_session(context: RequestContext) -> StoredSession:
    """Return the session in the path; only its user may change or continue it."""
    stored = await find(context.sessions.runtime.store, context.request.path_params["session"])
    if stored is None or stored.title is None or not owns(context.identity, stored.id, stored.user):
        raise _unknown()
    return stored


def _unknown() -> HttpError:
    return HttpError(404, "unknown_session", "There is no such session; transcripts are kept for 7 days.")


def _may_read(context: RequestContext, stored: StoredSession) -> bool:
    if context.identity.session not in (None, stored.id):
        return False
    return context.is_operator or stored.user == context.identity.user


async def _owners(context: RequestContext) -> dict[str, OwningHost]:
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
    context: RequestContext, stored: StoredSession, owners: Mapping[str, OwningHost]
) -> dict[str, Any]:
    live = context.sessions.live.get(stored.id)
    state = stored.state
    if live is not None:
        # A host releases a session a moment after it has ended.
        state = live.session.state.value if live.session.active else ENDED
    owner = None if state == ENDED else owners.get(stored.id)
    return {
        "session": stored.id,
        "user": stored.user,
        "mode": stored.mode,
        "state": state,
        "live": owner is not None,
        "connected": owner is not None and owner.connected,
        "host": owner.host if owner else None,
        "beganAt": stored.began,
        "lastAt": stored.last,
        "turns": stored.turns,
        "registry": stored.registry,
        "title": stored.title,
    }


_SESSION = EndpointParameter(
    "session", "path", "The session's id.", {"type": "string", "maxLength": 100}, required=True
)
_NOT_OWN = "The session does not exist, has no messages, or belongs to another user."

SESSIONS = Endpoint(
    "GET",
    "/sessions",
    "The latest sessions: your own, or all for an operator.",
    sessions,
    parameters=(
        LIMIT,
        EndpointParameter(
            "user",
            "query",
            "`me`: only your own sessions, even for an operator.",
            {"type": "string", "enum": ["me"]},
        ),
        EndpointParameter(
            "search",
            "query",
            "Only sessions with all these words in the title or in a message.",
            {"type": "string", "maxLength": MAX_SEARCH},
        ),
    ),
    responses={200: (ResponseForm("Sessions, the latest first.", "SessionList"),)},
    errors={400: "The query is invalid; the message says where."},
)

TRANSCRIPT = Endpoint(
    "GET",
    "/sessions/{session}/transcript",
    "The transcript of a session.",
    transcript,
    parameters=(
        _SESSION,
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
    errors={
        400: "There is no such format.",
        404: "The session does not exist, or it belongs to another user.",
    },
)

SESSION_TOKEN = Endpoint(
    "POST",
    "/sessions/{session}/token",
    "A token that resumes one of your own sessions.",
    issue_token,
    parameters=(_SESSION,),
    responses={200: (ResponseForm("The token.", "SessionToken"),)},
    errors={
        403: "The access token is valid for the other mode only.",
        404: _NOT_OWN,
        410: "The session has ended.",
    },
)

SESSION_TITLE = Endpoint(
    "POST",
    "/sessions/{session}/title",
    "Give one of your own sessions a title.",
    set_title,
    parameters=(_SESSION,),
    body="TitleBody",
    responses={200: (ResponseForm("The session.", "SessionSummary"),)},
    errors={400: "The body is invalid; the message says where.", 404: _NOT_OWN},
)

DELETE_SESSION = Endpoint(
    "POST",
    "/sessions/{session}/delete",
    "Delete one of your own sessions, with its transcript.",
    delete,
    parameters=(_SESSION,),
    responses={200: (ResponseForm("The session is deleted.", "DeletedSession"),)},
    errors={404: _NOT_OWN},
)
