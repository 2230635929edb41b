"""The start of a host: the startup summary, faults, the log, and health."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from host_harness import HostFolder, HostProcess, free_port, running_host, scripted_provider
from jackfield.settings import Settings, SettingsError
from jackfield.store import StoreUnavailableError
from jackfield_cli import main
from jackfield_host import logs
from jackfield_host.app import open_host
from jackfield_host.endpoints import health
from jackfield_host.settings import HostSettings
from jackfield_host.startup import local_url, network_access
from jackfield_scripted import ScriptedModel


async def silent(model: ScriptedModel) -> None:
    """A model that gets no request."""


def toml(host_folder: HostFolder, host: str = "", top: str = "", tables: str = "") -> Path:
    """Return the settings of a host whose provider gets no request."""
    config = host_folder.path / "jackfield.toml"
    top = top or 'provider = "openai"'
    config.write_text(
        f"registry = {json.dumps(str(host_folder.registry))}\n{top}\n"
        f'[transports.openai]\nbase_url = "http://127.0.0.1:9/v1"\n{tables}\n[host]\n{host}\n'
    )
    return config


@pytest.fixture
def refused(host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Return a function that runs `serve` in a folder where a host has run before, and returns its error."""
    host_folder.create_store()
    root = logging.getLogger()
    before, level = root.handlers[:], root.level

    def serve(*arguments: str, **environ: str) -> str:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        # If the host starts after all, it is stopped, and the test fails.
        stopping = threading.Timer(30, os.kill, (os.getpid(), signal.SIGTERM))
        stopping.start()
        done = CliRunner().invoke(main, ["serve", *arguments])
        stopping.cancel()
        assert isinstance(done.exception, SystemExit), done.exception
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.startswith("Error: ")
        return done.stderr.removeprefix("Error: ").rstrip("\n")

    yield serve
    root.handlers[:] = before
    root.setLevel(level)


def test_the_startup_summary_has_url_provider_store_and_token(host_folder: HostFolder) -> None:
    async def drive() -> str:
        async with scripted_provider(silent) as served, HostProcess(host_folder, served) as host:
            assert await host.kill(signal.SIGTERM) == 0
            return host.output.read_text().replace(str(host.port), "PORT")

    said = asyncio.run(drive())
    registry = json.loads(host_folder.registry.read_text())["version"]
    told = [line for line in said.splitlines() if line.startswith(("Jackfield ", "  ", "Open "))]
    assert told[0] == f"Jackfield {version('jackfield-host')}"
    assert told[-1] == "Open http://127.0.0.1:PORT · Ctrl-C stops"
    assert f"  registry  {registry} ({host_folder.registry}, development)\n" in said
    assert "  provider  openai (text, voice): the `provider` setting names it\n" in said
    assert "  store     sqlite\n" in said
    assert "hst_look" in said.partition(" offered: ")[2].partition("\n")[0].split(", ")
    assert "  token     not required: every program on this machine has access; if a proxy or tunnel " in said
    assert "  settings  " in said
    assert "host-PORT.toml" in said


def test_a_detected_provider_is_shown_with_the_reason_and_better_alternatives(
    host_folder: HostFolder,
) -> None:
    from jackfield_host.startup import startup_summary

    async def drive() -> list[str]:
        async with scripted_provider(silent) as served:
            settings = replace(host_folder.settings(served), provider="auto")
            async with open_host(settings, HostSettings(port=0)) as host:
                said = startup_summary(host, settings, 80, ())
                better = said._replace(provider_hints=("set A_KEY to use A", "run `b`"))
                return [*said.lines(), *better.lines()]

    lines = asyncio.run(drive())
    told = "  provider  openai (text, voice): [transports.openai] base_url is set"
    assert lines.count(told) == 2
    where = lines.index("  better    set A_KEY to use A")
    assert lines[where - 1 : where + 2] == [told, lines[where], "  better    run `b`"]


def test_withheld_tools_are_listed_by_reason(host_folder: HostFolder) -> None:
    document = json.loads(host_folder.registry.read_text())
    assert "hst_look" in json.dumps(document)

    async def drive() -> str:
        async with scripted_provider(silent) as served:
            settings = host_folder.settings(served)
            from jackfield_host.startup import startup_summary

            async with open_host(settings, HostSettings(port=0)) as host:
                registry = host.sessions.runtime.registry
                registry.withheld = {
                    "hst_odd": "needs weather: no key is set",
                    "hst_book": "needs rooms, which no installed plugin provides",
                    "hst_note": "needs weather: no key is set",
                }
                registry.tools = {
                    name: tool for name, tool in registry.tools.items() if name not in registry.withheld
                }
                return "\n".join(startup_summary(host, settings, 80, ("--port",)).lines())

    said = asyncio.run(drive())
    assert [line for line in said.splitlines() if "withheld" in line] == [
        "  withheld  hst_book: needs rooms, which no installed plugin provides",
        "  withheld  hst_note, hst_odd: needs weather: no key is set",
    ]
    assert "hst_odd" not in said.partition("offered:")[2].partition("\n")[0]
    assert "settings  --port" in said


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("0.0.0.0", "http://localhost:80"),
        ("::", "http://localhost:80"),
        ("agent.example", "http://agent.example:80"),
    ],
)
def test_the_url_works_for_a_browser_on_this_machine(address: str, shown: str) -> None:
    assert local_url(address, 80) == shown


def test_a_host_on_every_address_says_how_other_machines_reach_it() -> None:
    assert (
        network_access("0.0.0.0", 80)
        == network_access("::", 80)
        == "reachable on port 80 at every address of this machine"
    )
    assert network_access("127.0.0.1", 80) == network_access("agent.example", 80) == ""


def test_a_port_in_use_is_reported(host_folder: HostFolder) -> None:
    toml(host_folder)
    host_folder.create_store()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "jackfield_cli", "serve", "--port", str(port)],
            cwd=host_folder.path, capture_output=True, text=True, timeout=60, check=False,
            env={**os.environ, "PYTHONPATH": str(host_folder.site)},
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: [host] port: cannot listen on 127.0.0.1:{port}: the port is in use, "
        f"perhaps by another host; stop that program, or choose a different port: jackfield serve "
        f"--port {port + 1}\n"
    )


def test_all_faults_in_the_settings_are_reported_in_one_run_with_their_places(
    host_folder: HostFolder, refused: Callable[..., str]
) -> None:
    toml(host_folder, 'prot = 1\ndrain_seconds = -1\nlog_level = "loud"\n[host.jwt]\naudiense = "us"')
    faults = refused(
        JACKFIELD_HOST_MAX_SESSIONS="many", JACKFIELD_HOST_VOISE="alloy", JACKFIELD_HOST_JWT__LEEWAY="x"
    ).splitlines()
    assert faults == [
        "JACKFIELD_HOST_VOISE: unknown setting; did you mean 'JACKFIELD_HOST_VOICE'?",
        "[host] prot: unknown setting; did you mean 'port'?",
        "[host.jwt] audiense: unknown setting; did you mean 'audience'?",
        "[host.jwt] algorithms: missing; expected a non-empty list of entries, each one of "
        "'RS256', 'ES256', 'EdDSA', "
        "'Ed25519', 'HS256'",
        "[host.jwt] audience: missing; expected a non-empty string",
        "JACKFIELD_HOST_JWT__LEEWAY: expected an integer number of seconds from 0 to 300",
        "JACKFIELD_HOST_MAX_SESSIONS: expected an integer of at least 1, got 'many'",
        "[host] drain_seconds: expected a number of seconds, at least 0, got -1",
        "[host] log_level: expected one of 'debug', 'info', 'warning', 'error', got 'loud'",
    ]


def test_a_secret_in_the_wrong_setting_is_not_repeated(
    host_folder: HostFolder, refused: Callable[..., str]
) -> None:
    secret = "hunter2-hunter2"
    toml(host_folder, f'keys = "{secret}"\njwt = "{secret}"')
    assert refused().splitlines() == ["[host] keys: expected a table", "[host] jwt: expected a table"]
    toml(host_folder, f'[host.keys.phone]\ndigest = "{secret}"\nuser = "ada"')
    said = refused(JACKFIELD_HOST_JWT__SECRET_ENV=f"{secret}!")
    assert "[host.keys.phone] digest: expected sha256: and 64 hexadecimal digits" in said
    assert "JACKFIELD_HOST_JWT__SECRET_ENV: expected the name of an environment variable" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("host", "top", "tables", "expected"),
    [
        ("", 'provider = "opemai"', "", "provider: no installed plugin offers 'opemai'; choose one of "),
        (
            "",
            'store = "sqlight"',
            "",
            "store: no installed plugin offers 'sqlight'; choose one of memory, postgres, sqlite",
        ),
        (
            'address = "0.0.0.0"',
            "",
            "",
            "[host] address: other machines can reach '0.0.0.0', but no token is required; add "
            "what `jackfield key "
            "NAME` prints to jackfield.toml, or set up [host.jwt], or listen on",
        ),
        ("", "", "[stores.sqlite]\npth = 1", "[stores.sqlite] pth: unknown setting; did you mean 'path'?"),
        (
            "",
            'provder = "openai"',
            "",
            "jackfield.toml provder: unknown setting; did you mean 'provider'?",
        ),
        ("", "port = 9", "", "host settings belong in [host]"),
        ("", "", '[stores.sqlite]\npath = "/proc/none/jackfield.db"', "the store /proc/none/jackfield.db"),
    ],
)
def test_settings_that_cannot_be_served_are_reported(
    host_folder: HostFolder, refused: Callable[..., str], host: str, top: str, tables: str, expected: str
) -> None:
    toml(host_folder, host, top, tables)
    assert expected in refused("--port", "0")


def test_a_host_setting_at_the_top_of_the_file_gets_no_misleading_suggestion(tmp_path: Path) -> None:
    file = tmp_path / "jackfield.toml"
    for name in {each.name for each in fields(HostSettings)} - {"hosts"}:
        file.write_text(f"{name} = 1\n")
        with pytest.raises(SettingsError, match=r"; host settings belong in \[host\]$"):
            Settings.load(file, {})


def test_faults_of_kernel_and_host_are_reported_together(
    host_folder: HostFolder, refused: Callable[..., str]
) -> None:
    toml(host_folder, "prot = 1", 'provder = "openai"\ndeployment = "test"')
    assert refused().splitlines() == [
        "jackfield.toml provder: unknown setting; did you mean 'provider'?",
        "jackfield.toml deployment: expected one of 'development', 'production', got 'test'",
        "[host] prot: unknown setting; did you mean 'port'?",
    ]
    # A file that cannot be read as TOML is one fault.
    (host_folder.path / "jackfield.toml").write_text("[host\n")
    assert refused().startswith("jackfield.toml: Expected ']'")


def test_faults_of_plugins_and_a_missing_token_are_reported_together(
    host_folder: HostFolder, refused: Callable[..., str]
) -> None:
    tables = "[policies.loops]\nidentical = 1\n[observers.audit]\npth = 1\n[policies.lops]\n"
    toml(host_folder, 'address = "0.0.0.0"', tables=tables)
    faults = refused("--port", "0").splitlines()
    assert [line.partition("; ")[0] for line in faults] == [
        "[host] address: other machines can reach '0.0.0.0', but no token is required",
        "[policies.loops] identical: unknown setting",
        "[observers.audit] pth: unknown setting",
        "[policies.lops]: no installed plugin offers this",
    ]


def test_faults_of_kernel_host_plugins_and_provider_are_reported_in_one_run(
    host_folder: HostFolder, refused: Callable[..., str]
) -> None:
    tables = (
        'vocie = 1\n[policies.loops]\nidentical = 1\n[policies.budgets]\nenabled = "no"\n[policies.lops]\n'
    )
    toml(
        host_folder,
        'prot = 1\naddress = "0.0.0.0"',
        'provider = "openai"\nstor = "memory"\ndeployment = "test"',
        tables,
    )
    faults = refused(JACKFIELD_HOST_MAX_SESSIONS="many").splitlines()
    assert [line.partition("; ")[0] for line in faults] == [
        "jackfield.toml stor: unknown setting",
        "jackfield.toml deployment: expected one of 'development', 'production', got 'test'",
        "[policies.budgets] enabled: expected true or false, got 'no'",
        "[host] prot: unknown setting",
        "JACKFIELD_HOST_MAX_SESSIONS: expected an integer of at least 1, got 'many'",
        "[host] address: other machines can reach '0.0.0.0', but no token is required",
        "[policies.loops] identical: unknown setting",
        "[transports.openai] vocie: unknown setting",
        "[policies.lops]: no installed plugin offers this",
    ]


def test_the_command_reports_nine_faults_in_nine_places_in_one_run(
    host_folder: HostFolder,
) -> None:
    host_folder.create_store()
    toml(
        host_folder,
        host='port = "http"',
        top='provider = "openai"\nprompt_tokens = -1',
        tables=(
            "vocie = 1\n"
            '[policies.budgets]\nvoice_calls = "four"\n'
            "[capabilities.bans]\nseconds = 60\n"
            "[stores.sqlite]\nlease = 0\n"
            "[observers.audit]\nbackups = 1.5\n"
            "[policies.budget]\nvoice_calls = 4\n"
        ),
    )
    done = subprocess.run(
        [sys.executable, "-m", "jackfield_cli", "serve"],
        cwd=host_folder.path, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(host_folder.site), "JACKFIELD_HOST_MAX_SESSIONS": "many"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.removeprefix("Error: ").splitlines() == [
        "jackfield.toml prompt_tokens: expected an integer number of tokens, at least 0, got -1",
        "[host] port: expected an integer from 0 to 65,535, got 'http'",
        "JACKFIELD_HOST_MAX_SESSIONS: expected an integer of at least 1, got 'many'",
        "[policies.budgets] voice_calls: expected an integer of at least 0, got 'four'",
        "[capabilities.bans] seconds: unknown setting; this table has no settings",
        "[stores.sqlite] lease: expected a number of seconds above 0, got 0",
        "[observers.audit] backups: expected an integer of at least 0, got 1.5",
        "[transports.openai] vocie: unknown setting; did you mean 'voice'?",
        "[policies.budget]: no installed plugin offers this; did you mean [policies.budgets]?",
    ]


def test_faults_of_plugins_do_not_hide_faults_of_provider_and_store(
    host_folder: HostFolder, refused: Callable[..., str]
) -> None:
    nowhere = '[stores.sqlite]\npath = "/proc/none/jackfield.db"\n'
    provider = "[transports.openai] vocie: unknown setting"
    store = "the store /proc/none/jackfield.db"
    for beside, told in (("[policies.loops]\nidentical = 1\n", ["[policies.loops] identical:"]), ("", [])):
        toml(host_folder, tables=f"vocie = 1\n{nowhere}{beside}")
        faults = refused("--port", "0").splitlines()
        assert len(faults) == 2 + len(told)
        for line, begin in zip(faults, [*told, provider, store], strict=True):
            assert line.startswith(begin)


def test_a_missing_registry_is_reported_with_invalid_host_settings(
    host_folder: HostFolder, refused: Callable[..., str]
) -> None:
    for host in ("prot = 1", 'address = "0.0.0.0"'):
        toml(host_folder, host)
        mistake, missing = refused("--registry", str(host_folder.path / "other.json")).splitlines()
        assert "prot" in mistake or "no token is required" in mistake
        assert "other.json" in missing
        assert "jackfield build" in missing


def test_faults_that_may_only_follow_from_another_are_not_reported(
    host_folder: HostFolder, refused: Callable[..., str]
) -> None:
    digest = '[host.keys.phone]\ndigest = "hunter2"\nuser = "ada"'
    toml(host_folder, f'address = "0.0.0.0"\n{digest}')
    (said,) = refused().splitlines()
    assert said.startswith("[host.keys.phone] digest: ")
    config = host_folder.path / "jackfield.toml"
    for wrong in ('registri = "elsewhere.json"', "registry = 1"):
        config.write_text(f"{wrong}\n")
        (said,) = refused().splitlines()
        assert "registr" in said


def test_a_provider_without_its_key_is_reported(host_folder: HostFolder, refused: Callable[..., str]) -> None:
    config = toml(host_folder)
    config.write_text(config.read_text().replace("base_url", "#"))
    said = refused(OPENAI_API_KEY="")
    assert said.startswith("provider: openai cannot be used: the environment variable OPENAI_API_KEY")
    said = refused("--provider", "gemini", GEMINI_API_KEY="", GOOGLE_API_KEY="")
    assert said.startswith("provider: gemini cannot be used: the environment variable GEMINI_API_KEY")


@pytest.mark.parametrize("content", [None, "{", '{"schemaVersion": 1}'])
def test_an_unreadable_registry_says_how_to_build_one(
    host_folder: HostFolder, refused: Callable[..., str], content: str | None
) -> None:
    toml(host_folder)
    registry = host_folder.path / "other.json"
    if content is not None:
        registry.write_text(content)
    assert "jackfield build" in refused("--registry", str(registry))


def test_flags_override_the_environment_which_overrides_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"port": 1, "max_sessions": 1, "idle_seconds": 1.0}
    monkeypatch.setenv("JACKFIELD_HOST_PORT", "2")
    monkeypatch.setenv("JACKFIELD_HOST_MAX_SESSIONS", "2")
    options = HostSettings.load(table, port=3)
    assert (options.port, options.max_sessions, options.idle_seconds) == (3, 2, 1.0)


def test_a_list_in_the_environment_uses_commas_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JACKFIELD_HOST_ORIGINS", "https://a.example, https://b.example")
    monkeypatch.setenv("JACKFIELD_HOST_HOSTS", '["a.example"]')
    monkeypatch.setenv("JACKFIELD_HOST_JWT__ALGORITHMS", "RS256")
    monkeypatch.setenv("JACKFIELD_HOST_JWT__AUDIENCE", "us")
    monkeypatch.setenv("JACKFIELD_HOST_JWT__KEY_FILE", "keys.pem")
    options = HostSettings.load({})
    assert options.origins == ("https://a.example", "https://b.example")
    assert options.hosts == ("a.example",)
    assert options.jwt
    assert options.jwt.algorithms == ("RS256",)
    monkeypatch.setenv("JACKFIELD_HOST_JWT", "nonsense")
    with pytest.raises(SettingsError, match="JACKFIELD_HOST_JWT"):
        HostSettings.load({})


@contextmanager
def logged(**options: Any) -> Iterator[io.StringIO]:
    """Capture the log with these options, and restore the loggers afterwards."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    written = io.StringIO()
    stderr, sys.stderr = sys.stderr, written
    try:
        tables = {"transports": {"openai": {"api_key_env": "ODDLY_NAMED"}}}
        environ = {"ODDLY_NAMED": "a-secret-of-ours", "SOME_API_KEY": "another-secret", "HOME": "/nowhere"}
        logs.configure_logging(HostSettings(**options), tables, environ)
        yield written
    finally:
        sys.stderr = stderr
        root.handlers[:] = before
        root.setLevel(level)


def test_a_log_record_is_one_line_and_cannot_control_a_terminal() -> None:
    with logged() as written:
        logging.getLogger("jackfield_host.x").info("said %s", "one\ntwo\x1b[2J\u2028three")
    (line,) = written.getvalue().splitlines()
    assert line.endswith(r" info    said one\ntwo\x1b[2J\u2028three")


def test_json_log_records_are_complete() -> None:
    with logged(log_format="json") as written:
        try:
            raise ValueError("the cause\nin two lines")
        except ValueError:
            logging.getLogger("jackfield_host.x").exception("it failed", extra={"session": "s1"})
    (line,) = written.getvalue().splitlines()
    told = json.loads(line)
    assert (told["level"], told["logger"], told["message"]) == ("error", "jackfield_host.x", "it failed")
    assert told["session"] == "s1"
    assert "ValueError: the cause" in told["traceback"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_of_the_environment_are_not_logged(form: str) -> None:
    with logged(log_format=form) as written:
        log = logging.getLogger("jackfield_host.x")
        log.warning("keys are %s and %s", "a-secret-of-ours", "another-secret", extra={"x": "another-secret"})
        log.warning("home is %s", "/nowhere")
    assert "secret" not in written.getvalue()
    assert "/nowhere" in written.getvalue()


def test_libraries_are_logged_from_warnings_on_or_at_debug_level() -> None:
    for level, expected in (("info", ["bad"]), ("debug", ["request", "bad"])):
        with logged(log_level=level) as written:
            logging.getLogger("httpx").info("request")
            logging.getLogger("httpx").warning("bad")
        assert [line.split()[-1] for line in written.getvalue().splitlines()] == expected
    with logged(log_level="error") as written:
        logging.getLogger("jackfield_host.x").warning("quiet")
    assert written.getvalue() == ""


def test_the_access_log_is_optional_and_has_no_tokens(host_folder: HostFolder) -> None:
    async def drive(**options: Any) -> str:
        async with scripted_provider(silent) as served, HostProcess(host_folder, served, **options) as host:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{host.port}") as http:
                await http.get("/health", params={"token": "do-not-tell-this"})
            async with host.client("text") as ada:
                await ada.say("end")
                await ada.until_closed()
            await host.kill(signal.SIGTERM)
            return host.output.read_text()

    plain = asyncio.run(drive())
    assert "/health" not in plain
    asked = asyncio.run(drive(access_log=True))
    assert '"GET /health?token=*** HTTP/1.1" 200' in asked
    assert '"WebSocket /ws/text" [accepted]' in asked
    assert "do-not-tell-this" not in asked


def test_the_json_startup_summary_is_one_line(host_folder: HostFolder) -> None:
    host_folder.create_store()

    async def drive() -> list[Any]:
        async with (
            scripted_provider(silent) as served,
            HostProcess(host_folder, served, log_format="json") as host,
        ):
            await host.kill(signal.SIGTERM)
            return [json.loads(line) for line in host.output.read_text().splitlines()]

    told = asyncio.run(drive())
    assert told[0]["message"].startswith("serving at http://127.0.0.1:")
    assert told[0]["provider"] == "openai"
    assert "hst_look" in told[0]["offered"]
    assert told[-1]["message"] == "drained"


def test_a_host_is_ready_while_its_store_accepts_writes(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(health, "CACHE_SECONDS", 0.0)

    async def drive() -> None:
        async with scripted_provider(silent) as served, running_host(host_folder, served) as host:
            look, store = host.host.health_check.run, host.sessions.runtime.store
            assert await look() == (True, False, {"registry": True, "provider": True, "store": True})

            async def away(*_: object, **__: object) -> None:
                raise StoreUnavailableError("the store is gone")

            with monkeypatch.context() as broken:
                broken.setattr(store, "put", away)
                for _ in range(3):
                    standing = await look()
                    assert (standing.ready, standing.parts["store"]) == (False, False)
            assert (await look()).ready
            host.sessions.admission.closed = True
            assert (await look())[:2] == (False, True)

    with caplog.at_level(logging.INFO):
        asyncio.run(drive())
    told = [each.message for each in caplog.records if each.name == health.__name__]
    assert told == ["not ready: the store is gone", "ready again: the store accepts writes"]


def test_frequent_health_checks_do_not_load_the_store(host_folder: HostFolder) -> None:
    async def drive() -> int:
        async with scripted_provider(silent) as served, running_host(host_folder, served) as host:
            runtime = host.sessions.runtime
            store, written = runtime.store, 0
            put = store.put

            async def counting(*arguments: Any, **options: Any) -> None:
                nonlocal written
                written += 1
                await put(*arguments, **options)

            store.put = counting  # type: ignore[method-assign]
            await asyncio.gather(*(host.host.health_check.run() for _ in range(200)))
            return written

    assert asyncio.run(drive()) == 1


def test_systemd_is_notified_of_ready_watchdog_and_stopping(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An abstract socket, because the path of a socket file is limited to about 100 characters.
    name = f"jackfield-test-{os.getpid()}-{free_port()}"
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
    monkeypatch.setenv("WATCHDOG_USEC", "100000")

    async def drive() -> list[str]:
        told: list[str] = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(f"\0{name}")
            manager.setblocking(False)

            async def hears(what: str) -> None:
                while not any(what in each for each in told):
                    told.append((await asyncio.get_running_loop().sock_recv(manager, 4096)).decode())

            async with scripted_provider(silent) as served, HostProcess(host_folder, served) as host:
                async with asyncio.timeout(60):
                    await hears("READY=1")
                    assert f"STATUS=listening on 127.0.0.1:{host.port}" in told[-1]
                    await hears("WATCHDOG=1")
                    told.clear()
                    await hears("WATCHDOG=1")
                    os.kill(host.pid, signal.SIGTERM)
                    await hears("STOPPING=1")
                    assert "EXTEND_TIMEOUT_USEC=40000000" in told[-1]
        return told

    asyncio.run(drive())


def test_a_missing_service_manager_does_not_stop_the_host(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))

    async def drive() -> int:
        async with scripted_provider(silent) as served, HostProcess(host_folder, served) as host:
            return await host.kill(signal.SIGTERM)

    assert asyncio.run(drive()) == 0
