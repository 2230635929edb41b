"""`GET /experiments`: the experiments of all hosts, for operators and the console."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jackfield_experiments.report import create_report
from jackfield_experiments.shared_figures import read_totals

if TYPE_CHECKING:
    from jackfield.runtime import Runtime

OPENAPI: dict[str, Any] = {
    "paths": {
        "/experiments": {
            "get": {
                "summary": "The experiments in effect, with the figures of each arm on all hosts.",
                "responses": {
                    "200": {
                        "description": "The version in effect, and its experiments.",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    }
                },
            }
        }
    }
}


def routes(runtime: Runtime) -> Iterable[Route]:
    """Return the endpoint's route on a host."""

    async def experiments(_: Request) -> Response:
        found = runtime.experiments
        if found is None:
            return JSONResponse({"version": None, "problem": None, "experiments": []})
        totals = await read_totals(runtime.store)
        return JSONResponse(create_report(found.current, found.aborts, totals, found.problem))

    return [Route("/experiments", experiments, methods=["GET"])]
