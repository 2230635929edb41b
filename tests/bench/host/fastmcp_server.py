"""FastMCP's streamable HTTP server with the tool, as its documentation runs it under uvicorn.

With BENCH_STATELESS, it keeps no sessions and answers with JSON instead of server-sent events, which is its
cheapest form.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import uvloop

from bench.host.bare_host import config
from bench.host.processes import announced
from bench.implementations.typed_tool import kb_search

if __name__ == "__main__":
    server: Any = import_module("fastmcp").FastMCP("bench")
    server.tool(kb_search)
    stateless = bool(os.environ.get("BENCH_STATELESS"))
    uvloop.run(announced(config(server.http_app(stateless_http=stateless, json_response=stateless))))
