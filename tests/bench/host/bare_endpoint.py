"""The simplest endpoint for a tool: it parses the arguments, runs the handler and answers with JSON."""

from __future__ import annotations

import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.host.bare_host import config
from bench.host.processes import announced
from bench.implementations.workload import TOOL, evidence


async def execute(request: Request) -> JSONResponse:
    arguments = (await request.json())["arguments"]
    return JSONResponse({"success": True, "output": evidence(arguments.get("top_k", 5))})


app = Starlette(routes=[Route(f"/execute/{TOOL}", execute, methods=["POST"])])


if __name__ == "__main__":
    uvloop.run(announced(config(app)))
