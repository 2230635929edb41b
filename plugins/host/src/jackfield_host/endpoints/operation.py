"""An HTTP endpoint with its description: the same object is routed, published and documented."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jackfield_host import errors
from jackfield_host.endpoints.visit import SESSION, Visit
from jackfield_host.house import House
from jackfield_host.security.gate import Arrival
from jackfield_host.wire.bodies import Body

EVENT_STREAM = "text/event-stream"

Schema = Mapping[str, Any]


class Parameter(NamedTuple):
    """Something a request says besides its body."""

    name: str
    where: Literal["path", "query", "header"]
    meaning: str
    schema: Schema
    required: bool = False


class Said(NamedTuple):
    """One form in which a request is answered."""

    meaning: str
    model: type[BaseModel] | None = None
    media: str = "application/json"


_TOKEN: Schema = {"type": "string", "minLength": 1, "maxLength": 200}

NAMED = Parameter(SESSION, "header", "The token of the session.", _TOKEN, required=True)
"""A session has to be named."""

MAY_BE_NAMED = Parameter(SESSION, "header", "The token of a session; left out, one is made.", _TOKEN)
"""A session may be named."""

Answering = Callable[[Visit], Awaitable[Response]]
Enter = Callable[[Request], Awaitable[Visit]]


@dataclass(frozen=True)
class Operation:
    """One endpoint."""

    method: Literal["GET", "POST"]
    path: str
    summary: str
    answering: Answering
    answers: Mapping[int, tuple[Said, ...]]
    fails: Mapping[int, str] = field(default_factory=dict)
    """What its own failures mean, by status; those of every endpoint are not listed here."""
    body: type[Body] | None = None
    parameters: tuple[Parameter, ...] = ()
    enter: Enter = Visit.admitted
    """Who may ask: somebody, or everybody who may see the host at all."""
    safe: bool = True
    """Whether asking changes nothing; if not, a `GET` has no `HEAD`."""

    @property
    def name(self) -> str:
        """What a generated client calls it."""
        words = re.findall(r"\w+", f"{self.method.lower()} {self.path}")
        return "_".join(words)

    @property
    def allowed(self) -> list[str]:
        """The methods that its path knows."""
        head = ["HEAD"] if self.method == "GET" and self.safe else []
        return [self.method, *head, "OPTIONS"]

    def route(self) -> Route:
        """What the application serves."""
        return Route(self.path, self._endpoint, methods=[self.method, "OPTIONS"], name=self.name)

    async def _endpoint(self, request: Request) -> Response:
        try:
            if request.method == "OPTIONS":
                House.of(request).gate.screen(Arrival.of(request.scope))
                return Response(status_code=204, headers={"Allow": ", ".join(self.allowed)})
            if request.method not in self.allowed:
                raise errors.wrong_method(self.allowed)
            return await self.answering(await self.enter(request))
        except Exception as error:  # noqa: BLE001 - one request that fails is one request
            return errors.of(error).response()
