"""`jackfield calls`: lists calls in doubt and settles them once."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

TEXT = '{"text": "hello"}'
GOVERNED = {"JACKFIELD_ALLOW": "fab-*,jackfield-policies,jackfield-store-sqlite,jackfield-observability"}
CALL = ("call", "dies", TEXT, "--session", "s", "--user", "ada", "--call-id", "call_123456")
HANDLER = """\
import os
import signal
from pathlib import Path

async def execute(args, ctx):
    Path("effect").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def key(site: Any) -> str:
    """Return the key of a call whose process was killed while it ran."""
    schema = {"version": "1.2.3", "category": "action", "sideEffects": "writes", "idempotent": False}
    site.tool("dies", schema=schema, handler=HANDLER)
    settings = Path(site.folder.parent) / "jackfield.toml"
    settings.write_text('[observers.audit]\npath = "audit.jsonl"\narguments = true\n')
    assert site.run("build", **GOVERNED).returncode == 0
    assert site.run(*CALL, **GOVERNED).returncode == -signal.SIGKILL
    (doubtful,) = json.loads(site.run("calls", "list", "--in-doubt", "--json", **GOVERNED).stdout)
    assert (doubtful["tool_id"], doubtful["user"], doubtful["call_id"]) == ("dies", "ada", "call_123456")
    assert json.loads(doubtful["arguments"]) == {"text": "hello"}
    return str(doubtful["key"])


def test_a_call_in_doubt_is_listed_with_its_details(site: Any, key: str) -> None:
    shown = site.run("calls", "list", **GOVERNED)
    assert shown.returncode == 0
    for part in (key, "dies", "ada", "hello"):
        assert part in shown.stdout
    assert "jackfield calls settle KEY --ran" in shown.stderr
    again = site.run(*CALL, **GOVERNED)
    assert again.returncode == 1
    assert "may or may not have taken effect" in again.stderr


def test_a_settled_call_returns_the_settled_result(site: Any, key: str) -> None:
    settled = site.run("calls", "settle", key, "--ran", "--data", '{"number": 7}', **GOVERNED)
    assert settled.stdout == f"{key} is settled: it ran\n"
    again = site.run(*CALL, "--json", **GOVERNED)
    answer = json.loads(again.stdout)["answer"]
    assert (again.returncode, answer["data"]) == (0, {"number": 7})
    assert answer["meta"]["settled"]["ran"] is True
    assert site.run("calls", "list", "--in-doubt", **GOVERNED).stdout == "no call is in doubt\n"
    audit = (Path(site.folder.parent) / "audit.jsonl").read_text().splitlines()
    (line,) = [json.loads(each) for each in audit if "settled as run by" in each]
    assert (line["tool"], line["toolVersion"], line["category"]) == ("dies", "1.2.3", "action")
    assert "arguments" not in line

    twice = site.run("calls", "settle", key, "--not-run", **GOVERNED)
    assert twice.returncode == 1
    assert "no call in doubt has the key" in twice.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say what happened: give --ran or --not-run"),
        (("--not-run", "--data", "1"), "--data cannot be used with --not-run"),
        (("--ran", "--data", "{"), "it is not JSON"),
    ],
)
def test_an_ambiguous_settlement_is_refused(
    site: Any, key: str, arguments: tuple[str, ...], message: str
) -> None:
    refused = site.run("calls", "settle", key, *arguments, **GOVERNED)
    assert refused.returncode == 2
    assert message in refused.stderr
