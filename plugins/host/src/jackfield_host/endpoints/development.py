"""`GET /development`: the last build of `jackfield dev` and its findings, for the console."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import Endpoint, EndpointParameter, RequestContext, ResponseForm
from jackfield_host.errors import HttpError
from jackfield_host.response_models import DevelopmentResponse

WAIT_SECONDS = 25.0
"""How long a request waits for the next build; proxies close connections that are silent for longer."""


async def development(context: RequestContext) -> Response:
    """Return the outcome of the last build; with `after`, wait for one with another number."""
    context.require_operator()
    status = context.host.development
    if status is None:
        raise HttpError(
            404,
            "not_development",
            "This host does not reload its tools.",
            suggestion="`jackfield dev` serves and reloads them.",
        )
    after = context.request.query_params.get("after")
    if after is not None:
        if not (after.isascii() and after.isdecimal() and len(after) < 10):
            raise HttpError(400, "invalid", "The query, at after: expected the `number` of a response.")
        await status.wait(int(after), WAIT_SECONDS, context.sessions.stopping)
    return JSONResponse(status.to_wire())


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
    responses={200: (ResponseForm("The last build.", DevelopmentResponse),)},
    errors={400: "`after` is not a number.", 404: "The host was not started with `jackfield dev`."},
)
