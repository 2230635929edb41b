"""The official conformance suite of MCP passes, but for what docs/mcp-conformance.md explains."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp_interop.conformance import REVISIONS, Role, reasons, unexplained
from mcp_interop.conformance_page import PAGE, Results, covering_patterns, programs, replaced, table
from mcp_interop.conformance_runs import client_results, server_results
from mcp_interop.node_packages import is_installed

pytestmark = pytest.mark.skipif(not is_installed(), reason="the packages from npm are not installed")


def test_the_server_meets_every_scenario_without_a_stated_reason(tmp_path: Path) -> None:
    check(server_results(tmp_path), "server")


def test_the_client_meets_every_scenario_without_a_stated_reason(tmp_path: Path) -> None:
    check(client_results(tmp_path), "client")


def check(results: Results, role: Role) -> None:
    """Fail if something is not met without a reason, if a reason is stale, or if the page differs."""
    ran = [scenario for revision in REVISIONS for scenario in results[revision].values()]
    assert [line for scenario in ran for line in unexplained(role, scenario)] == []
    stale = reasons(role).keys() - covering_patterns(role, ran)
    assert stale == set(), "these reasons no longer apply"
    page = PAGE.read_text("utf-8")
    assert replaced(page, role, table(role, results)) == page, "run `nox -s mcp_conformance`"


def test_the_page_lists_the_programs_in_the_versions_of_the_locks() -> None:
    page = PAGE.read_text("utf-8")
    assert replaced(page, "programs", programs()) == page, "run `nox -s mcp_conformance`"
