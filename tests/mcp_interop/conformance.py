"""The official conformance suite of MCP: its runs, and its results by scenario and check."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from mcp_interop.node_packages import node, script

PACKAGE = "@modelcontextprotocol/conformance"
REVISIONS = ("2025-11-25", "2026-07-28")
"""The last revision of the specification with a handshake, and the first one without."""
NOT_MET = Path(__file__).parent / "not_met.toml"
RUN_SECONDS = 240.0
"""Timeout of a run on a busy machine."""

Role = Literal["server", "client"]


@dataclass(frozen=True)
class Scenario:
    """The result of a scenario: the checks that passed, and those that did not."""

    name: str
    passed: int
    failures: Sequence[tuple[str, str]]
    """The id and the message of each failed check."""

    @property
    def total(self) -> int:
        return self.passed + len(self.failures)


def run(role: Role, revision: str, target: str, results: Path) -> dict[str, Scenario]:
    """Run all scenarios of a revision against a server's URL or a client's command.

    Some scenarios measure times, and all run at once. So one that fails without a reason runs again, alone.
    """
    found = _run(role, target, results, "--requirements", revision)
    missing = required(role, revision).keys() - found.keys()
    if missing:
        raise RuntimeError(f"the suite has no results of {sorted(missing)}")
    for name in [each.name for each in found.values() if unexplained(role, each)]:
        alone = ("--scenario", name, "--spec-version", revision)
        found |= _run(role, target, results / "again" / name, *alone)
    return found


def _run(role: Role, target: str, results: Path, *selection: str) -> dict[str, Scenario]:
    option = {"server": "--url", "client": "--command"}[role]
    subprocess.run(
        [node(), str(script(PACKAGE, "dist/index.js")), role, option, target, *selection,
         "--output-dir", str(results)],
        capture_output=True, text=True, check=False, timeout=RUN_SECONDS,
    )  # fmt: skip
    scenarios = [_read(path, results, role) for path in results.rglob("checks.json")]
    return {each.name: each for each in scenarios}


def unexplained(role: Role, scenario: Scenario) -> list[str]:
    """Return the checks of a scenario that failed without a reason, with their messages."""
    patterns = reasons(role)
    return [
        f"{scenario.name}:{check}: {message}"
        for check, message in scenario.failures
        if covering(scenario.name, check, patterns) is None
    ]


@cache
def required(role: Role, revision: str) -> dict[str, str]:
    """Return the scenarios that the suite runs, and for those that it does not score, the suite's reason."""
    text = script(PACKAGE, f"requirements/{revision}.yaml").read_text("utf-8")
    document = yaml.safe_load(text)
    extra = {each["scenario"]: each["reason"] for each in document["not_scored"] if each["leg"] == role}
    return {**dict.fromkeys(document[role], ""), **extra}


def _read(path: Path, results: Path, role: Role) -> Scenario:
    checks: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    # The name of a scenario may have a slash: auth/metadata-default-TIME.
    folder = path.parent.relative_to(results).as_posix()
    name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", folder)
    name = name.removeprefix("server-") if role == "server" else name
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    # A warning is about something that the specification recommends.
    failures = [
        (check["id"], check.get("errorMessage", ""))
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    ]
    if not passed and not failures:
        failures = [("skipped", "the suite did not check anything")]
    return Scenario(name, passed, failures)


def reasons(role: Role) -> dict[str, str]:
    """Return why scenarios, or single checks of them, are not met, by pattern."""
    document: dict[str, dict[str, str]] = tomllib.loads(NOT_MET.read_text("utf-8"))
    return document[role]


def covering(scenario: str, check: str, patterns: Iterable[str]) -> str | None:
    """Return the pattern that covers a failed check; None if the check should have passed."""
    return next((each for each in patterns if _covers(each, scenario, check)), None)


def _covers(pattern: str, scenario: str, check: str) -> bool:
    name, _, one = pattern.partition(":")
    return fnmatchcase(scenario, name) and (not one or fnmatchcase(check, one))
