"""`/development`: the last build of `jackfield dev`, and a build that reads listings again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import OPERATORS_ONLY, Endpoint, EndpointParameter, RequestContext, ResponseForm
from jackfield_host.errors import HttpError

if TYPE_CHECKING:
    from jackfield_host.development.status import DevelopmentStatus

WAIT_SECONDS = 25.0
"""How long a request waits for the next build; proxies close connections that are silent for longer."""


async def development(context: RequestContext) -> Response:
    """Return the outcome of the last build; with `after`, wait for one with another number."""
    status = _status(context)
    after = context.request.query_params.get("after")
    if after is not None:
        if not (after.isascii() and after.isdecimal() and len(after) < 10):
            raise HttpError(
                400, "invalid", "Invalid query parameter `after`: expected the `number` of a response."
            )
        await status.wait(int(after), WAIT_SECONDS, context.sessions.stopping)
    return JSONResponse(status.to_wire())


async def accept_listings(context: RequestContext) -> Response:
    """Request a build that accepts what other systems list now; return the outcome of the build before it."""
    status = _status(context)
    before = status.to_wire()
    status.accept_listings()
    return JSONResponse(before, 202)


def _status(context: RequestContext) -> DevelopmentStatus:
    context.require_operator()
    status = context.host.development
    if status is None:
        raise HttpError(
            404,
            "not_development",
            "This host does not reload its tools.",
            suggestion="Start the host with `jackfield dev`, or run `jackfield build` and restart the host.",
        )
    return status


DEVELOPMENT = Endpoint(
    "GET",
    "/development",
    "The last build of `jackfield dev`, with its findings.",
    development,
    parameters=(
        EndpointParameter(
            "after",
            "query",
            f"Wait up to {WAIT_SECONDS:g} seconds for a build with another number.",
            {"type": "integer", "minimum": 0},
        ),
    ),
    responses={200: (ResponseForm("The last build.", "DevelopmentResponse"),)},
    errors={400: "`after` is not a number.", 404: "The host was not started with `jackfield dev`."},
)

ACCEPT_LISTINGS = Endpoint(
    "POST",
    "/development/listings",
    "Build again, and accept what other systems, such as MCP servers, list now.",
    accept_listings,
    responses={202: (ResponseForm("The build before the requested one.", "DevelopmentResponse"),)},
    errors={404: "The host was not started with `jackfield dev`.", **OPERATORS_ONLY},
)
