"""`jackfield replay`: what would change for recorded calls under another registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jackfield_testkit.site_packages import SCHEMA

ALLOW = "fab-*,jackfield-policies,jackfield-store-sqlite,jackfield-observability"
GOVERNED = {"JACKFIELD_ALLOW": ALLOW}
TRACE = """from pathlib import Path

from jackfield import ok


async def execute(args, ctx):
    with Path("ran").open("a") as file:
        file.write("once\\n")
    return ok({"said": args["text"]})
"""
WRITES = {"category": "action", "sideEffects": "writes", "idempotent": False}
RETRIEVES = {"category": "retrieval", "sideEffects": "read_only"}
TEXT = '{"text": "hello"}'


def parameters(**properties: Any) -> dict[str, Any]:
    own: dict[str, Any] = SCHEMA["parameters"]
    members = {**own["properties"], **properties}
    return {**own, "properties": {name: each for name, each in members.items() if each is not ...}}


class Recording:
    """A site whose calls are recorded by the real audit log, and whose tools can be changed."""

    def __init__(self, site: Any) -> None:
        self.site = site
        self.folder = Path(site.folder.parent)
        self.audit = self.folder / "audit.jsonl"
        self.configure()

    def configure(self, more: str = "") -> None:
        table = '[observers.audit]\npath = "audit.jsonl"\narguments = true\n'
        (self.folder / "jackfield.toml").write_text(table + more)

    def tool(self, tool_id: str, **changes: Any) -> None:
        self.site.tool(tool_id, schema=changes, handler=TRACE)

    def change(self, tool_id: str, **changes: Any) -> None:
        file = self.site.folder / f"fab_{tool_id}" / "schema.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))

    def build(self, name: str = "tool_registry.json", allow: str = ALLOW) -> None:
        built = self.site.run("build", "--registry", name, JACKFIELD_ALLOW=allow)
        assert built.returncode == 0, built.stderr

    def call(self, tool: str, arguments: str = TEXT, *options: str) -> None:
        self.site.run("call", tool, arguments, *options, **GOVERNED)

    def replay(self, *options: str, expected: int = 1) -> Any:
        """Replay the audit log against the new registry, and return the report."""
        self.build("new.json")
        done = self.site.run("replay", "audit.jsonl", "--against", "new.json", "--json", *options, **GOVERNED)
        assert done.returncode == expected, done.stderr + done.stdout
        return json.loads(done.stdout)

    @property
    def runs(self) -> int:
        return len((self.folder / "ran").read_text().splitlines())


@pytest.fixture
def recording(site: Any) -> Recording:
    return Recording(site)


def changes(report: Any) -> list[tuple[str, str]]:
    return [(each["tool"], each["change"]) for each in report["changes"]]


def test_unchanged_tools_change_nothing_and_nothing_runs(recording: Recording) -> None:
    recording.tool("say")
    recording.tool("write", **WRITES)
    recording.build()
    recording.call("say")
    recording.call("write")
    recording.call("say", '{"text": 1}')
    recording.call("no_such_tool")
    before = recording.runs, recording.audit.read_text()
    report = recording.replay(expected=0)
    assert report["totals"] == {"same": 4}
    assert (recording.runs, recording.audit.read_text()) == before


def test_a_call_that_the_new_schema_rejects_is_reported_with_the_message(recording: Recording) -> None:
    recording.tool("say")
    recording.build()
    recording.call("say", '{"text": "good morning"}')
    recording.call("say", '{"text": "hi"}')
    recording.change("say", parameters=parameters(text={"type": "string", "maxLength": 5}))
    report = recording.replay()
    assert report["tools"] == {"say": {"invalid": 1, "same": 1}}
    (found,) = report["changes"]
    assert found["place"] == "audit.jsonl:1"
    assert '/text: "good morning" is longer than 5 characters' in found["detail"]


def test_a_removed_parameter_that_only_the_host_filled_in_is_no_change(recording: Recording) -> None:
    recording.tool("say")
    recording.build()
    recording.call("say")
    recording.call("say", '{"text": "hello", "times": 2}')
    recording.change("say", parameters=parameters(times=...))
    report = recording.replay()
    assert report["tools"] == {"say": {"same": 1, "invalid": 1}}
    assert report["changes"][0]["place"] == "audit.jsonl:2"
    # Without the old registry, nobody can tell who wrote the argument.
    assert recording.replay("--registry", "none.json")["tools"] == {"say": {"invalid": 2}}


def test_removed_and_withheld_tools_are_told_apart(recording: Recording) -> None:
    for tool in ("gone", "broken", "kept"):
        recording.tool(tool)
    recording.build()
    for tool in ("gone", "broken", "kept"):
        recording.call(tool)
    recording.build("new.json", allow=ALLOW.replace("fab-*", "fab-kept,fab-broken"))
    handler = recording.site.folder / "fab_broken" / "handler.py"
    handler.write_text(handler.read_text() + "# changed after the build\n")
    done = recording.site.run("replay", "audit.jsonl", "--against", "new.json", "--json", **GOVERNED)
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert changes(report) == [("broken", "withheld"), ("gone", "unknown")]
    assert "differs from the frozen version" in report["changes"][0]["detail"]


def test_mode_availability_and_rate_limits_refuse(recording: Recording) -> None:
    for tool in ("spoken", "members", "limited"):
        recording.tool(tool)
    recording.build()
    for tool in ("spoken", "members", "limited", "limited"):
        recording.call(tool, TEXT, "--session", f"of {tool}")
    recording.change("spoken", allowedModes=["voice"])
    recording.change("members", availability={"user": {"authenticated": True}})
    recording.change("limited", rateLimit={"calls": 1, "windowMs": 3_600_000})
    report = recording.replay()
    assert report["totals"] == {"refused": 3, "same": 1}
    assert [each["detail"].partition(":")[0] for each in report["changes"]] == [
        "rate_limits",
        "availability",
        "modes",
    ]


def test_budgets_are_counted_in_the_recorded_turn_in_order_of_arrival(recording: Recording) -> None:
    recording.tool("find", **RETRIEVES)
    recording.tool("say")
    recording.build()
    turn = ("--session", "s", "--turn", "one", "--mode", "voice")
    for text in "abc":
        recording.call("find", json.dumps({"text": text}), *turn)
    # A refused call is recorded at once, but calls that arrived before it may end later.
    first, second, third = recording.audit.read_text().splitlines()
    assert json.loads(third)["error"] == "BUDGET_EXCEEDED"
    recording.audit.write_text(f"{third}\n{second}\n{first}\n")
    assert recording.replay(expected=0)["totals"] == {"same": 3}
    recording.configure("[policies.budgets]\nvoice_retrievals = 1\n")
    assert recording.replay()["tools"] == {"find": {"same": 2, "refused": 1}}
    recording.configure("[policies.budgets]\nvoice_retrievals = 5\n")
    assert recording.replay(expected=0)["tools"] == {"find": {"same": 2, "accepted": 1}}


def test_changed_confirmation_is_reported_once_per_call(recording: Recording) -> None:
    recording.tool("freed", **WRITES, requiresConfirmation=True)
    recording.tool("guarded", **WRITES)
    recording.tool("steady", **WRITES, requiresConfirmation=True)
    recording.build()
    recording.call("freed", TEXT, "--session", "a", "--call-id", "call_000001", "--yes")
    recording.call("steady", TEXT, "--session", "a", "--call-id", "call_000002", "--yes")
    recording.call("guarded")
    assert len(recording.audit.read_text().splitlines()) == 5
    recording.change("freed", requiresConfirmation=False)
    recording.change("guarded", requiresConfirmation=True)
    report = recording.replay()
    assert changes(report) == [("freed", "no_confirmation"), ("guarded", "confirmation")]
    assert (report["calls"], report["skipped"]) == (3, 2)
    assert recording.runs == 3


def test_what_an_assistant_said_is_no_call(recording: Recording) -> None:
    recording.tool("find")
    recording.build()
    recording.call("find")
    said = {"event": "claim", "tool": "find", "says": "found", "state": "no_call", "session": "a", "turn": 2}
    with recording.audit.open("a") as file:
        file.write(json.dumps(said) + "\n")
    report = recording.replay(expected=0)
    assert (report["calls"], report["skipped"]) == (1, 0)


def test_what_the_audit_log_redacts_is_not_judged(recording: Recording) -> None:
    recording.tool("say", parameters=parameters(text={"type": "string", "x-sensitive": True}))
    recording.build()
    recording.call("say")
    recording.change("say", parameters=parameters(text={"type": "string", "maxLength": 7}))
    report = recording.replay(expected=0)
    assert changes(report) == [("say", "undetermined")]
    assert report["changes"][0]["detail"] == "the recording does not contain all arguments"
    recording.change("say", allowedModes=["voice"])
    assert changes(recording.replay()) == [("say", "refused")]


def test_roles_are_unknown_unless_they_are_given(recording: Recording) -> None:
    recording.tool("say")
    recording.build()
    recording.call("say", TEXT, "--user", "ada")
    recording.change("say", availability={"user": {"roles": ["editor"]}})
    assert changes(recording.replay(expected=0)) == [("say", "undetermined")]
    assert changes(recording.replay("--role", "guest")) == [("say", "refused")]
    assert recording.replay("--role", "editor", expected=0)["totals"] == {"same": 1}


def test_lines_that_cannot_be_read_are_reported_with_their_place(recording: Recording) -> None:
    recording.tool("say")
    recording.build()
    recording.call("say")
    good = recording.audit.read_text()
    no_mode = json.dumps({**json.loads(good), "mode": "smoke"})
    deep = json.dumps({**json.loads(good), "arguments": json.loads('{"a":' + "[" * 400 + "]" * 400 + "}")})
    long = "x" * (1024 * 1024 + 10)
    lines = ["{", "[]", '{"event": "call"}', no_mode, '{"type": "tool_start"}', long, deep]
    recording.audit.write_text("".join(f"{line}\n" for line in lines) + good)
    recording.build("new.json")
    done = recording.site.run("replay", "audit.jsonl", "--against", "new.json", **GOVERNED)
    assert done.returncode == 1
    places = [line.partition(" ")[0] for line in done.stderr.splitlines()]
    assert places[:6] == [f"audit.jsonl:{number}:" for number in range(1, 7)]
    assert "`decisions` is missing" in done.stderr
    assert "not readable" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_long_recording_shows_progress_and_counts_what_it_does_not_list(recording: Recording) -> None:
    recording.tool("say")
    recording.build()
    recording.call("say", '{"text": "good morning"}')
    line = json.loads(recording.audit.read_text())
    with recording.audit.open("w") as file:
        for number in range(25_000):
            file.write(json.dumps({**line, "session": f"s{number % 12_000}", "turn": number}) + "\n")
    recording.change("say", parameters=parameters(text={"type": "string", "maxLength": 5}))
    recording.build("new.json")
    done = recording.site.run("replay", "audit.jsonl", "--against", "new.json", "--limit", "2", **GOVERNED)
    assert done.returncode == 1
    assert done.stderr.startswith("25000 lines read, ")
    assert "  25000 would be invalid\n" in done.stdout
    assert "    and 24998 more\n" in done.stdout


def test_several_files_are_merged_by_time(recording: Recording) -> None:
    recording.tool("limited", rateLimit={"calls": 1, "windowMs": 3_600_000})
    recording.build()
    recording.call("limited", TEXT, "--session", "s")
    recording.call("limited", TEXT, "--session", "s")
    older, newer = recording.audit.read_text().splitlines()
    (recording.folder / "older.jsonl").write_text(older + "\n")
    recording.audit.write_text(newer + "\n")
    report = recording.replay("older.jsonl", expected=0)
    assert report["totals"] == {"same": 2}


def test_mistakes_get_a_message(recording: Recording) -> None:
    recording.tool("say")
    recording.build()
    for arguments, status, message in (
        (("audit.jsonl",), 2, "Missing option '--against'"),
        (("none.jsonl", "--against", "tool_registry.json"), 1, "none.jsonl: No such file or directory"),
        (("jackfield.toml", "--against", "none.json"), 1, "none.json: no registry found"),
        (("/dev/null", "--against", "tool_registry.json"), 1, "No calls were found"),
    ):
        done = recording.site.run("replay", *arguments, **GOVERNED)
        assert done.returncode == status
        assert message in done.stderr
        assert "Traceback" not in done.stderr
