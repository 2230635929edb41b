"""Runs the conformance suite and writes the tables of docs/mcp-conformance.md: `nox -s mcp_conformance`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from mcp_interop.conformance_page import PAGE, programs, replaced, table
from mcp_interop.conformance_runs import client_results, server_results

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        page = replaced(PAGE.read_text("utf-8"), "server", table("server", server_results(Path(scratch))))
        page = replaced(page, "client", table("client", client_results(Path(scratch))))
    page = replaced(page, "programs", programs())
    PAGE.write_text(page, "utf-8")
