"""A served registry: loaded, verified, locked, and sessions that resume after a restart."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from jackfield import ToolCall, ToolResponse
from jackfield.contract.snapshot import SnapshotError
from jackfield.governance import Call
from jackfield.orchestrator import Observer
from jackfield.protocol.messages import UnbackedClaim
from jackfield.registry.registry import Deployment, Registry, RegistryError
from jackfield.runtime import Runtime
from jackfield.session.session import TRANSITIONS, State
from jackfield.settings import Settings, SettingsError, SettingsFaults
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_store_sqlite.creation import initialise
from jackfield_testkit.command_server import run_command

PLUGINS = ("fab-*", "jackfield-policies", "jackfield-store-sqlite")
TEXT = '{"text": "one two three"}'


def frozen(**said: Any) -> Settings:
    """Build a registry from the installed tools; return its settings."""
    settings = Settings(allow=PLUGINS, **said)
    built = build(settings)
    assert built.snapshot, built.findings
    write_snapshot(built.snapshot, settings.registry)
    return settings


def publish(event: str, fields: Any, *, once: bool = False) -> None:
    """Accept every message."""


async def call(
    runtime: Runtime, session: Any, tool_id: str, arguments: str = TEXT, call_id: str | None = None
) -> Any:
    (answer,) = await runtime.orchestrator.handle(session, [ToolCall(tool_id, arguments, call_id)])
    return json.loads(answer.wire)


def test_a_frozen_tool_runs_under_every_policy(site: Any) -> None:
    site.tool("fab_words")
    settings = frozen(store="memory")

    async def main() -> Any:
        runtime = await Runtime.start(settings)
        session = await runtime.open_session("text", user="ada")
        answer = await call(runtime, session, "fab_words")
        await runtime.close()
        return answer, runtime.registry.version

    answer, version = asyncio.run(main())
    assert answer["data"] == {"words": 3}
    assert answer["meta"]["registryVersion"] == version


def test_changed_code_is_fatal_in_development_and_withheld_in_production(
    site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    drifted = site.tool("fab_drifted")
    site.tool("fab_sound")
    settings = frozen()
    with (drifted / "handler.py").open("a") as file:
        file.write("# edited after the build\n")

    with pytest.raises(RegistryError, match="fab_drifted differs from the frozen version"):
        Registry.load(settings.registry)
    registry = Registry.load(settings.registry, Deployment.PRODUCTION)
    assert set(registry.tools) == {"fab_sound"}
    assert "differs from the frozen version" in registry.withheld["fab_drifted"]
    assert "fab_drifted is withheld" in caplog.text


@pytest.mark.parametrize("file", ["guide.md", "schema.json"])
def test_production_serves_the_frozen_guide_and_schema(site: Any, file: str) -> None:
    """Only code is taken from the installation; development reports the difference."""
    package = site.tool("fab_words")
    settings = frozen()
    with (package / file).open("a") as text:
        text.write("\n")
    with pytest.raises(RegistryError, match="fab_words differs from the frozen version"):
        Registry.load(settings.registry)
    assert set(Registry.load(settings.registry, Deployment.PRODUCTION).tools) == {"fab_words"}
    told = [jackfield("tools", JACKFIELD_DEPLOYMENT=each).stdout for each in ("development", "production")]
    assert ["withheld" in each for each in told] == [True, False], told


def test_a_call_of_a_withheld_tool_is_answered(site: Any) -> None:
    site.tool("fab_needy", requires=["telepathy"])
    settings = frozen(store="memory")

    async def main() -> Any:
        runtime = await Runtime.start(settings)
        return await call(runtime, await runtime.open_session("text"), "fab_needy")

    error = asyncio.run(main())["error"]
    assert error["type"] == "NOT_FOUND"
    assert "needs telepathy, which no installed plugin provides" in error["message"]


def test_a_locked_registry_cannot_be_reloaded_and_an_unlocked_one_can(site: Any) -> None:
    site.tool("fab_one")
    settings = frozen()
    registry = Registry.load(settings.registry)
    site.tool("fab_two")
    frozen()
    registry.reload()
    assert set(registry.tools) == {"fab_one", "fab_two"}
    registry.lock()
    with pytest.raises(RegistryError, match="locked"):
        registry.reload()
    with pytest.raises(RegistryError, match="development"):
        Registry.load(settings.registry, Deployment.PRODUCTION).reload()


def test_a_reload_loads_the_frozen_code_or_changes_nothing(site: Any) -> None:
    package = site.tool("fab_said")
    handler = (package / "handler.py").read_text() + '\n\nexecute.__doc__ = "Run one call."\n'
    (package / "handler.py").write_text(handler)
    settings = frozen(store="memory")
    registry = Registry.load(settings.registry)

    def said() -> tuple[str, str]:
        return registry.version, str(registry.tools["fab_said"].handler.__doc__)

    first = said()
    (package / "handler.py").write_text(handler.replace("Run one call", "Run another call"))
    with pytest.raises(RegistryError, match="differs from the frozen version"):
        registry.reload()
    assert said() == first
    frozen()
    registry.reload()
    version, doc = said()
    assert (version, doc[:11]) == (Registry.load(settings.registry).version, "Run another")
    settings.registry.write_text("{}")
    with pytest.raises(SnapshotError, match="not a registry"):
        registry.reload()
    assert said() == (version, doc)


@pytest.mark.parametrize("kind", ["tool", "plugin"])
def test_an_unreadable_package_differs_from_the_frozen_one(site: Any, kind: str) -> None:
    site.tool("fab_sound")
    if kind == "tool":
        folder = site.tool("fab_hidden")
    else:
        site.plugin("fab-hidden", "")
        folder = site.folder / "fab_hidden"
    settings = frozen(store="memory")
    (folder / "notes.txt").symlink_to("notes.txt")

    async def start(deployment: Literal["development", "production"]) -> set[str]:
        runtime = await Runtime.start(replace(settings, deployment=deployment))
        await runtime.close()
        return set(runtime.registry.tools)

    with pytest.raises(
        RegistryError, match=r"fab.hidden cannot be read \(.*notes.txt: .*; run `jackfield build`"
    ):
        asyncio.run(start("development"))
    assert asyncio.run(start("production")) == {"fab_sound"}


def test_the_registry_gives_summaries_guides_and_metadata_by_mode(site: Any) -> None:
    site.tool("fab_both")
    site.tool("fab_text", allowedModes=["text"])
    registry = Registry.load(frozen().registry)
    assert set(registry.summaries("voice")) == {"fab_both"}
    assert registry.summaries("text")["fab_text"].startswith("Counts the words")
    assert (registry.documentation("fab_both") or "").startswith("# fab_both")
    assert (registry.metadata("fab_both") or {})["latencyBudgetMs"] == 200
    assert registry.provider_schemas("openai", "text") == {}
    assert registry.documentation("nobody") is None


def test_a_session_resumes_after_a_restart_with_turn_budget_and_answers(site: Any) -> None:
    site.tool("fab_words", category="retrieval")
    settings = frozen(store="sqlite")

    async def before() -> Any:
        runtime = await Runtime.start(settings)
        session = await runtime.open_session("voice", user="ada", session_id="s")
        await runtime.begin_turn(session)
        answers = [
            await call(runtime, session, "fab_words", '{"text": "a"}', f"call_{n:06}") for n in range(1)
        ]
        await session.save(runtime.store)
        await runtime.close()
        return answers[0]

    async def after() -> Any:
        runtime = await Runtime.start(settings)
        session = await runtime.resume_session("s", publish)
        assert session is not None
        assert (session.mode, session.user, session.turn.number) == ("voice", "ada", 2)
        replayed = await call(runtime, session, "fab_words", '{"text": "a"}', "call_000000")
        second = await call(runtime, session, "fab_words", '{"text": "b"}', "call_000001")
        third = await call(runtime, session, "fab_words", '{"text": "c"}', "call_000002")
        assert await runtime.resume_session("nobody", publish) is None
        await runtime.close()
        return replayed, second, third

    first = asyncio.run(before())
    replayed, second, third = asyncio.run(after())
    assert replayed == first
    assert second["ok"] is True
    assert third["error"]["type"] == "BUDGET_EXCEEDED"


@pytest.mark.parametrize("deployment", ["development", "production"])
def test_a_session_of_another_registry_is_fatal_in_development_and_resumes_in_production(
    site: Any, deployment: str, caplog: pytest.LogCaptureFixture
) -> None:
    site.tool("fab_words")
    settings = frozen(store="sqlite", deployment=deployment)
    initialise(Path("jackfield.db").absolute())

    async def begin() -> None:
        runtime = await Runtime.start(settings)
        await runtime.open_session("text", session_id="s")
        await runtime.close()

    async def resume() -> Any:
        runtime = await Runtime.start(settings)
        try:
            session = await runtime.resume_session("s", publish)
            return await call(runtime, session, "fab_words")
        finally:
            await runtime.close()

    asyncio.run(begin())
    site.tool("fab_more")
    frozen(store="sqlite")
    if deployment == "development":
        with pytest.raises(RegistryError, match="in development, a session does not continue"):
            asyncio.run(resume())
    else:
        assert asyncio.run(resume())["ok"] is True
        assert "pinned to registry" in caplog.text


@pytest.mark.parametrize("returns", ["report", "enforce"])
def test_the_setting_returns_controls_whether_violating_data_is_passed_on(site: Any, returns: str) -> None:
    site.tool("fab_words", returns={"type": "object", "properties": {"words": {"maximum": 100}}})
    settings = frozen(store="memory", returns=returns)

    async def main() -> Any:
        runtime = await Runtime.start(settings)
        text = json.dumps({"text": "word " * 101})
        answer = await call(runtime, await runtime.open_session("text"), "fab_words", text)
        await runtime.close()
        return answer

    answer = asyncio.run(main())
    assert answer["ok"] is (returns == "report")
    assert [each["path"] for each in answer["meta"]["returnsViolations"]] == ["/words"]


def test_an_unknown_store_or_an_invalid_setting_fails_at_startup(site: Any) -> None:
    site.tool("fab_words")
    settings = frozen(store="cloud")
    with pytest.raises(
        SettingsError, match=r"^store: no installed plugin offers 'cloud'; choose one of memory, sqlite$"
    ):
        asyncio.run(Runtime.start(settings))
    wrong = Settings(allow=PLUGINS, store="memory", tables={"policies": {"budgets": {"voice_cals": 3}}})
    with pytest.raises(SettingsError, match="voice_cals"):
        asyncio.run(Runtime.start(wrong))


def test_all_faults_in_the_tables_of_plugins_are_reported_in_one_run(site: Any) -> None:
    site.tool("fab_words")
    tables = {
        "policies": {"budgets": {"voice_cals": 3}, "loops": {"identical": 1}, "budget": {}},
        "capabilities": {"bans": {"x": 1}},
    }
    with pytest.raises(SettingsError) as caught:
        asyncio.run(Runtime.start(frozen(store="memory", tables=tables)))
    faults = [
        "[policies.budgets] voice_cals: unknown setting; did you mean 'voice_calls'?",
        "[policies.loops] identical: unknown setting; did you mean 'identical_calls'?",
        "[capabilities.bans] x: unknown setting; this table has no settings",
        "[policies.budget]: no installed plugin offers this; did you mean [policies.budgets]?",
    ]
    assert str(caught.value).splitlines() == faults
    with pytest.raises(SettingsError) as caught:
        asyncio.run(Runtime.start(frozen(store="cloud", tables=tables)))
    store = "store: no installed plugin offers 'cloud'; choose one of memory, sqlite"
    assert str(caught.value).splitlines() == [*faults, store]


def test_faults_found_earlier_are_reported_too(site: Any) -> None:
    site.tool("fab_words")
    faults = SettingsFaults()
    faults.add("[host] prot: unknown setting; did you mean 'port'?")
    tables = {"policies": {"budgets": {"voice_cals": 3}}}
    with pytest.raises(SettingsError) as caught:
        asyncio.run(Runtime.start(frozen(store="memory", tables=tables), faults=faults))
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "[host] prot",
        "[policies.budgets] voice_cals",
    ]


def test_a_plugin_that_was_installed_after_the_build_is_named_with_the_fix(site: Any) -> None:
    site.tool("fab_words")
    settings = frozen(store="cloud", tables={"capabilities": {"cloud": {}, "vault": {}}})
    site.plugin("fab-cloud", "")
    with pytest.raises(SettingsError) as caught:
        asyncio.run(Runtime.start(settings))
    fix = "; if fab-cloud does, run `jackfield build`; "
    cloud, vault, store = str(caught.value).splitlines()
    assert cloud.startswith(f"[capabilities.cloud]: no plugin in the registry offers this{fix}")
    assert vault.startswith("[capabilities.vault]: no installed plugin offers this; ")
    assert store.startswith(f"store: no plugin in the registry offers 'cloud'{fix}")


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"policies": {"budget": {}}}, r"\[policies.budget\].*did you mean \[policies.budgets\]"),
        (
            {"observers": {"nobody": {}}},
            r"\[observers.nobody\]: no installed plugin offers this; known",
        ),
    ],
)
def test_a_table_without_a_matching_offer_fails_at_startup(site: Any, tables: Any, reason: str) -> None:
    site.tool("fab_words")
    settings = frozen(store="memory", tables=tables)
    with pytest.raises(SettingsError, match=reason):
        asyncio.run(Runtime.start(settings))


@pytest.mark.parametrize(
    ("create", "reason"),
    [
        ("lambda settings: 1", "fab-plugin 1.0.0: thing cannot be created: TypeError"),
        ("lambda settings, services: 1 / 0", "thing cannot be created: ZeroDivisionError"),
        ("lambda settings, services: object()", "thing has no applies_to and no apply"),
    ],
)
def test_a_plugin_whose_offer_cannot_be_created_is_named(site: Any, create: str, reason: str) -> None:
    site.tool("fab_words")
    (site.folder / "fab_plugin").mkdir()
    (site.folder / "fab_plugin" / "__init__.py").write_text(
        "from jackfield import hookimpl\nfrom jackfield.offers import PolicyOffer, Stage\n"
        f"@hookimpl\ndef jackfield_policies():\n    return [PolicyOffer('thing', Stage.ADMIT, 1, {create})]\n"
    )
    info = site.folder / "fab_plugin-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: fab-plugin\nVersion: 1.0.0\n")
    (info / "entry_points.txt").write_text("[jackfield.plugins]\nmain = fab_plugin\n")
    settings = frozen(store="memory")
    sys.modules.pop("fab_plugin", None)
    with pytest.raises(RegistryError, match=reason):
        asyncio.run(Runtime.start(settings))
    sys.modules.pop("fab_plugin", None)


def test_a_policy_is_disabled_by_its_table(site: Any) -> None:
    site.tool("fab_words")
    settings = frozen(store="memory", tables={"policies": {"loops": {"enabled": False}}})

    async def main() -> list[bool]:
        runtime = await Runtime.start(settings)
        session = await runtime.open_session("text")
        return [(await call(runtime, session, "fab_words", TEXT, f"call_{n:06}"))["ok"] for n in range(5)]

    assert asyncio.run(main()) == [True] * 5


def test_ending_a_session_stops_its_reads_and_informs_model_and_observers(site: Any) -> None:
    package = site.tool("fab_slow", timeoutMs=60_000)
    (package / "handler.py").write_text(
        "import asyncio\nfrom jackfield import ok\n"
        "async def execute(args, ctx):\n    await asyncio.sleep(60)\n    return ok({})\n"
    )
    settings = frozen(store="memory")
    ended: list[str] = []

    class Watcher(Observer):
        def session_ended(self, session: Any) -> None:
            ended.append(session.id)

    async def main() -> Any:
        runtime = await Runtime.start(settings, observers=[Watcher()])
        session = await runtime.open_session("text", session_id="s")
        calling = asyncio.ensure_future(call(runtime, session, "fab_slow"))
        await asyncio.sleep(0.01)
        await runtime.end_session(session)
        assert session.state is State.TERMINATED
        return await calling

    answer = asyncio.run(main())
    assert answer["error"]["details"] == {"stopped": "ended"}
    assert answer["error"]["partialSideEffects"] is False
    assert ended == ["s"]


def test_every_state_transition_is_allowed_or_rejected_as_documented(site: Any) -> None:
    site.tool("fab_words")
    settings = frozen(store="memory")

    async def main() -> None:
        runtime = await Runtime.start(settings)
        for before in State:
            for after in State:
                session = await runtime.open_session("voice")
                session.state = before
                assert session.transition(after) is (before is after or after in TRANSITIONS[before])
                assert session.state is (after if before is after or after in TRANSITIONS[before] else before)

    asyncio.run(main())


# jackfield call


def jackfield(*arguments: str, stdin: str | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "JACKFIELD_STORE": "sqlite", **environ}
    return run_command(arguments, cwd=Path.cwd(), env=environment, stdin=stdin)


def test_call_shows_the_answer_the_policy_trace_and_the_duration(site: Any) -> None:
    site.tool("fab_words")
    frozen()
    done = jackfield("call", "fab_words", TEXT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"words": 3}
    assert "policies: duplicates pass, bans pass" in done.stderr
    assert "fab_words 0.1.0 in " in done.stderr
    assert jackfield("call", "fab_words", "-", stdin=TEXT).stdout == done.stdout


def test_call_resumes_a_session_and_runs_each_id_once(site: Any) -> None:
    site.tool("fab_words")
    frozen()
    first, second = (
        json.loads(
            jackfield(
                "call", "fab_words", TEXT, "--session", "s", "--call-id", "call_123456", "--json"
            ).stdout
        )
        for _ in range(2)
    )
    assert first["answer"] == second["answer"]
    assert second["decisions"]["duplicates"] == "replayed"
    assert (first["turn"], second["turn"]) == (1, 2)


def test_call_leaves_a_confirmation_pending_unless_approved(site: Any) -> None:
    site.tool("fab_risky", requiresConfirmation=True, preview="Count {text}?")
    frozen()
    pending = jackfield("call", "fab_risky", TEXT, "--json")
    assert pending.returncode == 1
    shown = json.loads(pending.stdout)
    assert shown["answer"]["error"]["type"] == "CONFIRMATION_REQUIRED"
    assert shown["events"][0]["token"] == "(hidden)"
    approved = jackfield("call", "fab_risky", TEXT, "--yes", "--json")
    assert json.loads(approved.stdout)["answer"]["ok"] is True


def shown_until(terminal: int, wanted: bytes, seconds: float = 30) -> bytes:
    """Return the terminal output up to the awaited text, or all of it."""
    shown = b""
    deadline = time.monotonic() + seconds
    while wanted not in shown and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:
                break
    return shown


@pytest.mark.parametrize(
    ("answer", "returncode", "said"),
    [(b"y\n", 0, b'"words": 3'), (b"n\n", 1, b"Declined; nothing was run."), (None, 1, b"Aborted!")],
    ids=["yes", "no", "Ctrl-C"],
)
def test_call_asks_for_confirmation_in_the_terminal(
    site: Any, answer: bytes | None, returncode: int, said: bytes
) -> None:
    site.tool("fab_risky", requiresConfirmation=True, preview="Count {text}?")
    frozen()
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "jackfield_cli", "call", "fab_risky", TEXT],
        stdin=end,
        stdout=end,
        stderr=end,
        env={**os.environ, "JACKFIELD_STORE": "memory"},
    )
    os.close(end)
    assert b"Count one two three?" in shown_until(terminal, b"Run it?")
    if answer is not None:
        os.write(terminal, answer)
        shown = shown_until(terminal, said)
    else:
        shown = b""
        while said not in shown and process.poll() is None:
            # Repeated if necessary: a signal just before the terminal is read is only noticed afterwards.
            process.send_signal(signal.SIGINT)
            shown += shown_until(terminal, said, 1)
        shown += b"" if said in shown else shown_until(terminal, said, 1)
    assert said in shown
    shown_until(terminal, b"registry 1.0.", 2)
    assert process.wait(30) == returncode
    os.close(terminal)


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["call", "fab_word"], 1, "Did you mean 'fab_words'?"),
        (["call", "fab_words", "{"], 1, "VALIDATION"),
        (
            ["call", "fab_words", '{"txt": 1}'],
            1,
            'do not match the schema of fab_words: "text" is a required property; Add',
        ),
        (
            ["call", "fab_words", '{"text": 1}'],
            1,
            'do not match the schema of fab_words: /text: 1 is not of type "string"',
        ),
        (["call", "fab_words", TEXT, "--mode", "loud"], 2, "'loud'"),
        (["call", "fab_words", TEXT, "--registry", "gone.json"], 1, "run `jackfield build`"),
        (
            ["call", "fab_words", TEXT, "--session", "s" * 2000],
            2,
            "2000 characters; the maximum is 200",
        ),
        (["call", "fab_words", TEXT, "--user", "\udcff"], 2, "it is not UTF-8"),
    ],
)
def test_usage_errors_of_call_are_explained(site: Any, arguments: list[str], code: int, reason: str) -> None:
    site.tool("fab_words")
    frozen()
    done = jackfield(*arguments)
    assert done.returncode == code
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_call_without_standard_input_is_explained(site: Any) -> None:
    site.tool("fab_words")
    frozen()
    line = f"{sys.executable} -m jackfield_cli call fab_words - <&-"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "Error: cannot read the arguments from standard input (`-`) because it is closed; "
        "give them as JSON instead\n",
    )


def test_output_printed_by_a_tool_does_not_corrupt_the_json(site: Any) -> None:
    package = site.tool("fab_words")
    (package / "handler.py").write_text(
        "from jackfield import ok\n\n\n"
        "async def execute(args, ctx):\n    print('by the way')\n    return ok(1)\n"
    )
    frozen()
    done = jackfield("call", "fab_words", TEXT, "--json")
    assert json.loads(done.stdout)["answer"]["data"] == 1
    assert "by the way" in done.stderr


def test_a_ban_by_a_tool_applies_in_another_process(site: Any, tmp_path: Path) -> None:
    site.tool("fab_words")
    settings = Settings(allow=(*PLUGINS, "jackfield-tool-ignore-user"))
    built = build(settings)
    assert built.snapshot, built.findings
    write_snapshot(built.snapshot, settings.registry)
    ban = '{"duration_seconds": 60, "farewell_message": "Enough for today."}'
    imposed = json.loads(jackfield("call", "ignore_user", ban, "--user", "bob", "--json").stdout)
    assert imposed["answer"]["ok"] is True, imposed
    refused = jackfield("call", "fab_words", TEXT, "--user", "bob")
    assert "AUTH: This user is banned for another" in refused.stderr
    assert jackfield("call", "fab_words", TEXT, "--user", "eve").returncode == 0
    extended = json.loads(jackfield("call", "ignore_user", ban, "--user", "bob", "--json").stdout)
    assert extended["answer"]["data"]["seconds_remaining"] > 100


LENDER = """\
from jackfield import hookimpl
from jackfield.offers import CapabilityOffer


class Diary:
    closed = False

    def __init__(self, settings, services):
        pass

    def for_session(self, session):
        return f"the diary of {session.user}"

    async def close(self):
        Diary.closed = True


@hookimpl
def jackfield_capabilities():
    return [CapabilityOffer("diary", Diary, lambda settings: settings.get("why"))]
"""
READER = "from jackfield import ok\n\n\nasync def execute(args, ctx):\n    return ok(ctx.diary)\n"


def reader(site: Any) -> None:
    """Add a tool that returns what its capability gives it."""
    package = site.tool("fab_read", requires=["diary"])
    (package / "handler.py").write_text(READER)


def test_each_session_gets_its_own_view_of_a_capability_closed_at_the_end(site: Any) -> None:
    import importlib

    site.plugin("fab-diary", LENDER)
    reader(site)
    settings = frozen(store="memory")

    async def main() -> list[Any]:
        runtime = await Runtime.start(settings)
        sessions = [await runtime.open_session("text", user=user) for user in ("ada", "bob")]
        answers = [(await call(runtime, session, "fab_read"))["data"] for session in sessions]
        await runtime.close()
        return answers

    assert asyncio.run(main()) == ["the diary of ada", "the diary of bob"]
    assert importlib.import_module("fab_diary").Diary.closed


def test_a_failed_start_closes_everything_it_opened(site: Any) -> None:
    import importlib

    site.plugin("fab-diary", LENDER)
    site.plugin("fab-refused", REFUSED)
    reader(site)
    with pytest.raises(SettingsError, match=r"^\[policies.refused\] key: it does not work$"):
        asyncio.run(Runtime.start(frozen(store="memory")))
    assert importlib.import_module("fab_diary").Diary.closed


def test_nothing_is_created_while_a_table_has_a_fault(site: Any) -> None:
    import importlib

    site.plugin("fab-diary", LENDER)
    reader(site)
    tables = {"policies": {"budgets": {"voice_calls": -1}}}
    with pytest.raises(SettingsError, match="voice_calls"):
        asyncio.run(Runtime.start(frozen(store="memory", tables=tables)))
    assert not importlib.import_module("fab_diary").Diary.closed


def test_a_tool_without_its_capability_is_unavailable_with_a_reason(site: Any) -> None:
    site.plugin("fab-diary", LENDER)
    reader(site)
    for said in ({"why": "no diary was bought"}, {"enabled": False}):
        settings = frozen(store="memory", tables={"capabilities": {"diary": said}})

        async def main(settings: Settings = settings) -> Any:
            runtime = await Runtime.start(settings)
            session = await runtime.open_session("text")
            return runtime.registry.offered("text"), await call(runtime, session, "fab_read")

        offered, answer = asyncio.run(main())
        assert offered == []
        assert answer["error"]["type"] == "NOT_FOUND"
        why = "no diary was bought" if "why" in said else "is disabled"
        assert why in answer["error"]["message"]


@pytest.mark.parametrize(
    ("create", "unavailable", "table", "said"),
    [
        ("lambda settings, services: settings['path']", "lambda settings: None", {},
         r"^\[capabilities.diary\] path: missing; set it, or switch this off with enabled = false$"),
        ("dict", "lambda settings: settings['path']", {},
         r"^\[capabilities.diary\] path: missing; set it"),
        ("lambda settings, services: settings['db']['path']", "lambda settings: None", {"db": {}},
         r"^\[capabilities.diary.db\] path: missing; set it$"),
    ],
)  # fmt: skip
def test_a_missing_setting_of_a_capability_is_named_at_startup(
    site: Any, create: str, unavailable: str, table: dict[str, Any], said: str
) -> None:
    offer = f'CapabilityOffer("diary", {create}, {unavailable})'
    site.plugin("fab-diary", LENDER.replace(LENDER[LENDER.index("CapabilityOffer(") : -2], offer))
    reader(site)
    with pytest.raises(SettingsError, match=said):
        asyncio.run(Runtime.start(frozen(store="memory", tables={"capabilities": {"diary": table}})))


def test_a_capability_that_cannot_be_created_says_how_to_start_without_it(site: Any) -> None:
    offer = 'CapabilityOffer("diary", lambda settings, services: 1 / 0)'
    site.plugin("fab-diary", LENDER.replace(LENDER[LENDER.index("CapabilityOffer(") : -2], offer))
    reader(site)
    with pytest.raises(RegistryError, match=r"ZeroDivisionError.*enabled = false in \[capabilities.diary\]"):
        asyncio.run(Runtime.start(frozen(store="memory")))


REFUSED = """\
from jackfield import hookimpl
from jackfield.offers import PolicyOffer, Stage
from jackfield.settings import SettingsError

def refuse(settings, services):
    raise SettingsError("[policies.refused] key: it does not work")

@hookimpl
def jackfield_policies():
    return [PolicyOffer("refused", Stage.SHAPE, 99, refuse)]
"""

VOUCHER = """\
from jackfield import hookimpl
from jackfield.offers import PolicyOffer, Stage


class Asked:
    def __init__(self, settings, services):
        pass

    def applies_to(self, tool, session):
        return True

    async def apply(self, call, proceed):
        if "please" in call.turn.user_text:
            call.waive_confirmation("the user said please")
        else:
            call.add_preview_note("You did not say please.")
        return await proceed(call)


@hookimpl
def jackfield_policies():
    return [PolicyOffer("asked", Stage.SHAPE, 15, Asked)]
"""


@pytest.mark.parametrize("leaves_it", [True, False])
def test_a_policy_can_waive_confirmation_only_if_it_is_left_to_policies(site: Any, leaves_it: bool) -> None:
    site.plugin("fab-asked", VOUCHER)
    site.tool("fab_words", requiresConfirmation="policy" if leaves_it else True, preview="Go?")
    settings = frozen(store="memory")

    async def main() -> list[Any]:
        runtime = await Runtime.start(settings)
        session = await runtime.open_session("text", publish=publish)
        answers = []
        for said in ("do it", "do it, please"):
            await runtime.begin_turn(session, said)
            answers.append(await call(runtime, session, "fab_words"))
        await runtime.close()
        return answers

    first, second = asyncio.run(main())
    assert first["error"]["confirmation_request"]["preview"] == "Go?\nYou did not say please."
    assert second["ok"] is leaves_it


def test_user_messages_survive_a_restart(site: Any) -> None:
    site.tool("fab_words")
    settings = frozen()

    async def main() -> str:
        runtime = await Runtime.start(settings)
        session = await runtime.open_session("text")
        await runtime.begin_turn(session, "draw me")
        session.add_user_text("a lighthouse")
        await session.save(runtime.store)
        await runtime.close()
        again = await Runtime.start(settings)
        kept = await again.resume_session(session.id, publish)
        await again.close()
        assert kept is not None
        return kept.turn.user_text

    assert asyncio.run(main()) == "draw me a lighthouse"


# observers and capabilities that raise


class Panic(BaseException):
    """An exception like those of extensions in other languages."""


class RaisingObserver:
    """Raises the given error everywhere."""

    def __init__(self, error: BaseException | None) -> None:
        self.error, self.told = error, list[str]()

    def _raise(self, told: str) -> None:
        self.told.append(told)
        if self.error is not None:
            raise self.error

    def call_finished(self, call: Any, response: Any) -> None:
        self._raise("call_finished")

    def session_opened(self, session: Any, **tokens: int) -> None:
        self._raise("session_opened")

    def turn_began(self, session: Any) -> None:
        self._raise("turn_began")

    def claim_unbacked(self, session: Any, claim: Any) -> None:
        self._raise("claim_unbacked")

    def session_ended(self, session: Any) -> None:
        self._raise("session_ended")

    async def close(self) -> None:
        self._raise("close")


@pytest.mark.parametrize("error", [RuntimeError("loud"), Panic("loud"), asyncio.CancelledError("loud")])
def test_an_observer_that_always_raises_breaks_nothing_and_is_named(
    site: Any, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    site.tool("fab_words")
    settings = frozen(store="memory")
    loud, quiet = RaisingObserver(error), RaisingObserver(None)

    async def main() -> Any:
        runtime = await Runtime.start(settings, observers=[loud, quiet])
        session = await runtime.open_session("text")
        await runtime.begin_turn(session)
        answer = await call(runtime, session, "fab_words")
        claim = UnbackedClaim(tool="fab_words", says="counted", text="I counted it.", state="no_call")
        runtime.orchestrator.observers.claim_unbacked(session, claim)
        await runtime.end_session(session)
        await runtime.close()
        return answer

    assert asyncio.run(main())["ok"] is True
    everything = [
        "session_opened", "turn_began", "turn_began", "call_finished", "claim_unbacked", "session_ended",
        "close",
    ]  # fmt: skip
    assert loud.told == everything
    assert quiet.told == everything
    for told in everything[:-1]:
        assert f"RaisingObserver failed in {told}" in caplog.text
    assert "RaisingObserver failed to close" in caplog.text


def test_an_observer_implements_only_the_methods_that_it_needs(
    site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class FinishedCalls(Observer):
        def __init__(self) -> None:
            self.tools = list[str]()

        def call_finished(self, call: Call, response: ToolResponse) -> None:
            self.tools.append(call.tool.id)

    site.tool("fab_words")
    settings = frozen(store="memory")
    finished = FinishedCalls()

    async def main() -> None:
        runtime = await Runtime.start(settings, observers=[finished])
        session = await runtime.open_session("text")
        await runtime.begin_turn(session)
        await call(runtime, session, "fab_words")
        await runtime.end_session(session)
        await runtime.close()

    asyncio.run(main())
    assert finished.tools == ["fab_words"]
    assert "failed" not in caplog.text


def test_an_observer_cannot_prevent_the_process_from_exiting(site: Any) -> None:
    site.tool("fab_words")
    settings = frozen(store="memory")

    async def main() -> None:
        runtime = await Runtime.start(settings, observers=[RaisingObserver(SystemExit(3))])
        await runtime.open_session("text")

    with pytest.raises(SystemExit):
        asyncio.run(main())


def test_a_capability_that_fails_to_start_is_named_at_startup(site: Any) -> None:
    import importlib

    started = "    def started(self, runtime):\n        raise ConnectionError('no line')\n\n"
    site.plugin("fab-diary", LENDER.replace("    async def close", started + "    async def close"))
    reader(site)
    settings = frozen(store="memory")
    message = "plugin fab-diary 0.1.0: diary cannot be started: ConnectionError: no line"
    with pytest.raises(RegistryError, match=message):
        asyncio.run(Runtime.start(settings))
    assert importlib.import_module("fab_diary").Diary.closed
