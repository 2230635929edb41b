"""HTTP endpoints: the context of a request, and the object from which route and documentation are made."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from jackfield.session.session import Session
from jackfield.strict_json import StrictJsonError, parse_arguments
from jackfield_sessions.admission import Identity
from jackfield_sessions.manager import SessionManager
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from jackfield_host.errors import HttpError, method_not_allowed, to_http_error
from jackfield_host.host import OPERATOR, Host
from jackfield_host.security.authenticator import RequestInfo
from jackfield_host.validation_errors import describe_error
from jackfield_host.validators import load_validators

if TYPE_CHECKING:
    from jackfield_host.request_models import RequestBody

SESSION = "Jackfield-Session"
"""The header that names a session by its token."""

EVENT_STREAM = "text/event-stream"

SCHEMA_REF = "#/components/schemas/"
"""Where the API documents keep their schemas."""

BODY_SECONDS = 20.0
"""How long the body of a request may take to arrive."""

MAX_LIMIT = 500
"""The largest `limit` that a query may request."""

DEFAULT_LIMIT = 100

ANONYMOUS = Identity("")
"""The user of an endpoint that requires no authentication."""

_M = TypeVar("_M", bound="RequestBody")

Schema = Mapping[str, Any]


class RequestContext:
    """An admitted request: the host, the user, and the request itself."""

    def __init__(self, request: Request, host: Host, identity: Identity) -> None:
        self.request = request
        self.host = host
        self.identity = identity
        self.session_token = request.headers.get(SESSION)
        """The token of the session that the request names."""

    @property
    def sessions(self) -> SessionManager:
        """The host's sessions."""
        return self.host.sessions

    @property
    def is_operator(self) -> bool:
        """True if the request comes from an operator."""
        return self.host.is_operator(self.identity)

    def require_operator(self) -> None:
        """Reject a user without the operator role."""
        self.host.require_operator(self.identity)

    def require_session_token(self) -> str:
        """Return the token of the session; reject a request that names none."""
        if not self.session_token:
            raise HttpError(
                400,
                "no_session",
                f"The request names no session: send {SESSION}: <the token from the `session` message>.",
            )
        return self.session_token

    async def session(self, *, ended: bool = False) -> Session:
        """Load the session that the request names; ended sessions only if `ended` is true."""
        session = await self.sessions.load_session(self.require_session_token(), self.identity, ended=ended)
        self.check_mode(session.mode)
        return session

    def check_mode(self, mode: str) -> None:
        """Reject a user whose access token is valid for another mode only."""
        if self.identity.mode not in (None, mode):
            message = f"This token is valid for {self.identity.mode} sessions only."
            raise HttpError(403, "wrong_mode", message)

    async def body(self, model: type[_M]) -> _M:
        """Read and validate the JSON body; a 400 error says which member is wrong."""
        from pydantic import ValidationError

        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise HttpError(415, "not_json", "The body must be JSON: send Content-Type: application/json.")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                content = await self.request.body()
        except TimeoutError:
            raise HttpError(
                408, "too_slow", f"The body did not arrive within {BODY_SECONDS:g} seconds."
            ) from None
        except ClientDisconnect:
            raise HttpError(400, "cut_off", "The client disconnected before the body was complete.") from None
        if not content:
            raise HttpError(400, "invalid", "The body is empty; send a JSON object.")
        try:
            value, _ = parse_arguments(content)
            return model.model_validate(value, by_name=False)
        except StrictJsonError as error:
            fault = error.faults[0]
            raise HttpError(400, "invalid", f"Invalid body at {fault.where}: {fault.message}.") from None
        except ValidationError as error:
            members = [str(field.alias) for field in model.model_fields.values()]
            sentence = describe_error(error, lambda _: members)
            end = "" if sentence.endswith("?") else "."
            raise HttpError(400, "invalid", f"Invalid body at {sentence}{end}") from None

    def query_limit(self) -> int:
        """Return the query parameter `limit`."""
        given = self.request.query_params.get("limit", str(DEFAULT_LIMIT))
        if not (given.isascii() and given.isdecimal() and len(given) <= 4 and 1 <= int(given) <= MAX_LIMIT):
            raise HttpError(
                400, "invalid", f"Invalid query parameter `limit`: expected a number from 1 to {MAX_LIMIT}."
            )
        return int(given)

    def query_choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        """Return a query parameter that must be one of `choices`, or None if it is absent."""
        given = self.request.query_params.get(name)
        if given is not None and given not in choices:
            raise HttpError(
                400, "invalid", f"Invalid query parameter `{name}`: expected one of {', '.join(choices)}."
            )
        return given


class EndpointParameter(NamedTuple):
    """A parameter of a request: in its path, its query or its headers."""

    name: str
    location: Literal["path", "query", "header"]
    description: str
    schema: Schema
    required: bool = False


class ResponseForm(NamedTuple):
    """One form of a response, as the API documentation describes it."""

    description: str
    model: str | None = None
    """The name of the class in `response_models`."""
    media_type: str = "application/json"


_TOKEN: Schema = {"type": "string", "minLength": 1, "maxLength": 200}

SESSION_HEADER = EndpointParameter(SESSION, "header", "The token of the session.", _TOKEN, required=True)

OPTIONAL_SESSION_HEADER = EndpointParameter(
    SESSION, "header", "The token of a session; without it, a new session is created.", _TOKEN
)

LIMIT = EndpointParameter(
    "limit",
    "query",
    f"The largest number of results; {DEFAULT_LIMIT} by default.",
    {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
)
"""The parameter that `RequestContext.query_limit` reads."""

OPERATORS_ONLY = {403: f"On a host that requires tokens, this endpoint requires the `{OPERATOR}` role."}
"""The error of an endpoint that calls `RequestContext.require_operator`."""

Handler = Callable[[RequestContext], Awaitable[Response]]


@dataclass(frozen=True)
class Endpoint:
    """One HTTP endpoint: its route, its handler and its documentation."""

    method: Literal["GET", "POST"]
    path: str
    summary: str
    handler: Handler
    responses: Mapping[int, tuple[ResponseForm, ...]]
    errors: Mapping[int, str] = field(default_factory=dict)
    """The endpoint's own errors by status; those that every endpoint has are not listed here."""
    body: str | None = None
    """The name of the class in `request_models`."""
    parameters: tuple[EndpointParameter, ...] = ()
    auth: Literal["user", "public"] = "user"
    """Who may call it: authenticated users, or every client whose `Host` and `Origin` are accepted."""
    safe: bool = True
    """True if requests change nothing; otherwise, a `GET` route has no `HEAD`."""

    @property
    def name(self) -> str:
        """The operation id, which names it in generated clients."""
        words = re.findall(r"\w+", f"{self.method.lower()} {self.path}")
        return "_".join(words)

    @property
    def allowed_methods(self) -> list[str]:
        """The HTTP methods of its path."""
        head = ["HEAD"] if self.method == "GET" and self.safe else []
        return [self.method, *head, "OPTIONS"]

    def route(self) -> Route:
        """Return the Starlette route."""
        return Route(self.path, self, methods=[self.method, "OPTIONS"], name=self.name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, as an ASGI application."""
        response = await self._serve(Request(scope, receive, send))
        await response(scope, receive, send)

    async def _serve(self, request: Request) -> Response:
        try:
            host = Host.of(request)
            if request.method == "OPTIONS":
                host.authenticator.check_origin(RequestInfo.from_scope(request.scope))
                return Response(status_code=204, headers={"Allow": ", ".join(self.allowed_methods)})
            if request.method not in self.allowed_methods:
                raise method_not_allowed(self.allowed_methods)
            if self.auth == "public":
                host.authenticator.check_origin(RequestInfo.from_scope(request.scope))
                identity = None
            else:
                identity = await host.authenticate(request.scope)
                await load_validators()
            return await self.handler(RequestContext(request, host, identity or ANONYMOUS))
        except Exception as error:  # noqa: BLE001 - a failing request must not affect the others
            return to_http_error(error).response()
