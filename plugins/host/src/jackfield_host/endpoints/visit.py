"""One HTTP request: who sends it, what it brings, and which session it names."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from jackfield.session.session import Session
from jackfield.strict_json import StrictJsonError, parse_arguments
from jackfield_sessions.admission import Identity
from jackfield_sessions.manager import SessionManager
from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Scope

from jackfield_host.errors import HttpError
from jackfield_host.house import House
from jackfield_host.mistakes import explained
from jackfield_host.security.gate import Arrival
from jackfield_host.wire.bodies import Body

SESSION = "Jackfield-Session"
"""The header that names a session, by its token."""

BODY_SECONDS = 20.0
"""How long the body of a request may take to arrive."""

ANYBODY = Identity("")
"""Who has not said who they are."""

_B = TypeVar("_B", bound=Body)


OPERATOR = "operator"
"""The role of the users who may see what concerns others."""


def is_operator(house: House, identity: Identity) -> bool:
    """Whether a user has the role of an operator; on a host without tokens, everybody has."""
    return not house.gate.asks_for_token or OPERATOR in identity.roles


def not_operator() -> HttpError:
    """The refusal for a user without the role of an operator."""
    return HttpError(403, "not_operator", f"This needs the role `{OPERATOR}`.")


async def authenticate(house: House, scope: Scope, auth: str = "user") -> Identity | None:
    """Who sends a request: checks the names of host and origin, the token, the rate limit and bans.

    With the `auth` `public` only the names are checked, and the user is not known; with `operator` the user
    needs that role.
    """
    arrival = Arrival.of(scope)
    if auth == "public":
        house.gate.screen(arrival, page=True)
        return None
    identity = house.gate.admit(arrival)
    seconds = house.requests.take(identity.user)
    if seconds > 0:
        limit = f"{house.options.requests_per_minute:g} requests per minute"
        raise HttpError(429, "too_many_requests", f"Rate limit reached: {limit}.", retry_after=seconds)
    await house.sessions.admission.check_ban(identity)
    if auth == "operator" and not is_operator(house, identity):
        raise not_operator()
    return identity


class Visit:
    """A request that was let in."""

    def __init__(self, request: Request, house: House, identity: Identity) -> None:
        self.request = request
        self.house = house
        self.identity = identity

    @classmethod
    async def admitted(cls, request: Request) -> Visit:
        """Let a request in: somebody who may come in, not too often, and not banned."""
        house = House.of(request)
        identity = await authenticate(house, request.scope)
        return cls(request, house, identity or ANYBODY)

    @classmethod
    async def screened(cls, request: Request) -> Visit:
        """Let anybody in who may see the host at all, for what tells nothing about anybody."""
        house = House.of(request)
        house.gate.screen(Arrival.of(request.scope))
        return cls(request, house, ANYBODY)

    @property
    def sessions(self) -> SessionManager:
        """The host's sessions."""
        return self.house.sessions

    @property
    def token(self) -> str | None:
        """The token of the session that is named."""
        return self.request.headers.get(SESSION)

    def required_token(self) -> str:
        """The token of the session that has to be named."""
        if not self.token:
            raise HttpError(
                400,
                "no_session",
                f"Say which session is meant: {SESSION}: <the token that `session` carried>.",
            )
        return self.token

    async def session(self, *, ended: bool = False) -> Session:
        """The session that has to be named, live or as it was kept; one that has `ended` to look back at."""
        session = await self.sessions.load_session(self.required_token(), self.identity, ended=ended)
        self.check_mode(session.mode)
        return session

    def check_mode(self, mode: str) -> None:
        """Refuse somebody whose token is good for another mode alone."""
        if self.identity.mode not in (None, mode):
            raise HttpError(403, "wrong_mode", f"This token is good for {self.identity.mode} alone.")

    async def body(self, model: type[_B]) -> _B:
        """What the request brings; 400 says where it is wrong."""
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise HttpError(415, "not_json", "The body has to be JSON: Content-Type: application/json.")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                content = await self.request.body()
        except TimeoutError:
            raise HttpError(
                408, "too_slow", f"The body did not arrive within {BODY_SECONDS:g} seconds."
            ) from None
        except ClientDisconnect:
            raise HttpError(400, "cut_off", "The body was cut off.") from None
        if not content:
            raise HttpError(400, "invalid", "The body is empty, and a JSON object is wanted.")
        try:
            value, _ = parse_arguments(content)
            return model.model_validate(value, by_name=False)
        except StrictJsonError as error:
            fault = error.faults[0]
            raise HttpError(400, "invalid", f"The body, at {fault.where}: {fault.message}.") from None
        except ValidationError as error:
            members = [str(field.alias) for field in model.model_fields.values()]
            sentence = explained(error, lambda _: members)
            end = "" if sentence.endswith("?") else "."
            raise HttpError(400, "invalid", f"The body, at {sentence}{end}") from None
