"""`jackfield call`: signals, confirmation, sessions, repeated calls and output."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

GOVERNED = {"JACKFIELD_ALLOW": "fab-*,jackfield-policies,jackfield-store-sqlite"}
RISKY = {"requiresConfirmation": True, "preview": "Say {text} aloud?"}
TEXT = '{"text": "hello"}'
WRITES = {"category": "action", "sideEffects": "writes", "idempotent": False, "timeoutMs": 600_000}

# Runs until the file `go` exists, so that a test can interrupt it.
PATIENT = """import asyncio
from pathlib import Path

from jackfield import ok


async def execute(args, ctx):
    with Path("started").open("a") as file:
        file.write("once\\n")
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return ok({"said": args["text"]})
"""


def start(site: Any, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": str(site.folder), **GOVERNED}
    return subprocess.Popen(
        [sys.executable, "-m", "jackfield_cli", *arguments],
        cwd=site.folder.parent,
        env=environ,
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def patient(site: Any, **schema: Any) -> Path:
    site.tool("patient", schema=schema, handler=PATIENT)
    assert site.run("build", **GOVERNED).returncode == 0
    folder: Path = site.folder.parent
    return folder


def wait_for(file: Path, process: subprocess.Popen[str]) -> None:
    while not file.exists() and process.poll() is None:
        time.sleep(0.01)


CALL = ("call", "patient", TEXT, "--session", "s", "--call-id", "call_123456")


@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_write_finishes(site: Any, signalled: int) -> None:
    folder = patient(site, **WRITES)
    with start(site, *CALL) as process:
        wait_for(folder / "started", process)
        process.send_signal(signalled)
        assert process.stderr is not None
        assert process.stderr.readline() == (
            "patient writes data and is allowed to finish; press Ctrl-C again to cancel it.\n"
        )
        (folder / "go").touch()
        shown, _ = process.communicate()
    assert (process.returncode, json.loads(shown)) == (0, {"said": "hello"})


def test_a_cancelled_write_reports_it_now_and_when_repeated(site: Any) -> None:
    folder = patient(site, **WRITES)
    with start(site, *CALL) as process:
        wait_for(folder / "started", process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, output = process.communicate()
    assert process.returncode == 1
    assert "TRANSIENT: The user interrupted" in output
    assert "The call may still have changed something." in output
    again = site.run(*CALL, **GOVERNED)
    assert again.stderr.splitlines()[:2] == output.splitlines()[:2]
    assert "patient 1.0.0 replayed, in" in again.stderr
    assert (folder / "started").read_text() == "once\n"


def test_an_interrupted_read_is_cancelled_with_an_error(site: Any) -> None:
    folder = patient(site, timeoutMs=600_000)
    with start(site, *CALL) as process:
        wait_for(folder / "started", process)
        process.send_signal(signal.SIGINT)
        _, output = process.communicate()
    assert process.returncode == 1
    assert output.startswith("TRANSIENT: The user interrupted, and the tool was stopped")
    assert "changed something" not in output


SLOW_POLICY = """import asyncio
from pathlib import Path

from jackfield import hookimpl
from jackfield.offers import PolicyOffer, Stage


class Slow:
    def applies_to(self, tool, session):
        return True

    async def apply(self, call, proceed):
        Path("started").touch()
        while not Path("go").exists():
            await asyncio.sleep(0.01)
        return await proceed(call)


@hookimpl
def jackfield_policies():
    return [PolicyOffer("slow", Stage.ADMIT, 1, lambda *_: Slow())]
"""


def test_the_second_ctrl_c_cancels_a_call_that_waits_for_a_policy(site: Any) -> None:
    site.plugin("fab-slow", SLOW_POLICY)
    folder = patient(site, **WRITES)
    with start(site, *CALL) as process:
        wait_for(folder / "started", process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.readline() == "There is no result yet; press Ctrl-C again to cancel.\n"
        process.send_signal(signal.SIGINT)
        _, output = process.communicate()
    assert process.returncode == 1
    assert "Cancelled before there was a result." in output
    assert "Traceback" not in output


def test_the_third_ctrl_c_ends_a_handler_that_blocks_the_loop(site: Any) -> None:
    blocking = PATIENT.replace("await asyncio.sleep(0.01)", "__import__('time').sleep(0.01)")
    site.tool("patient", schema=WRITES, handler=blocking)
    assert site.run("build", **GOVERNED).returncode == 0
    folder: Path = site.folder.parent
    with start(site, *CALL) as process:
        wait_for(folder / "started", process)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        process.communicate()
    assert process.returncode != 0


def test_with_closed_standard_input_the_call_stays_unconfirmed(site: Any) -> None:
    site.tool("risky", schema=RISKY)
    assert site.run("build", **GOVERNED).returncode == 0
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -m jackfield_cli call risky "$1" <&-', sys.executable, TEXT],
        cwd=site.folder.parent,
        env={**os.environ, "PYTHONPATH": str(site.folder), **GOVERNED},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "CONFIRMATION_REQUIRED: nothing was run." in done.stderr
    assert "Traceback" not in done.stderr


def test_json_output_never_asks_for_confirmation(site: Any) -> None:
    site.tool("risky", schema=RISKY)
    assert site.run("build", **GOVERNED).returncode == 0
    output = site.run("call", "risky", TEXT, "--json", **GOVERNED).stderr
    assert (
        output == "This call needs confirmation, and --json cannot prompt for it. Use --yes to approve it.\n"
    )


@pytest.mark.parametrize(
    ("answer", "output"),
    [("\x04", "Nothing was run."), ("n\n", "Declined; nothing was run.")],
    ids=["end", "no"],
)
def test_a_confirmation_without_a_yes_says_that_nothing_was_run(site: Any, answer: str, output: str) -> None:
    site.tool("risky", schema=RISKY)
    assert site.run("build", **GOVERNED).returncode == 0
    assert output in on_a_terminal(site, answer, "call", "risky", TEXT)


def test_an_expired_confirmation_is_not_reported_as_declined(site: Any) -> None:
    site.tool("risky", schema=RISKY)
    assert site.run("build", **GOVERNED).returncode == 0
    (site.folder.parent / "jackfield.toml").write_text("[policies.confirmation]\nexpiry_seconds = 0.001\n")
    shown = on_a_terminal(site, "y\n", "call", "risky", TEXT)
    assert "The confirmation expired; nothing was run. Run the command again." in shown
    assert "Declined" not in shown


def on_a_terminal(site: Any, answer: str, *arguments: str) -> str:
    """Return the output of a terminal on which this answer is given."""
    shown = b""
    terminal, end = pty.openpty()
    with start(site, *arguments, stdin=end, stdout=end, stderr=end):
        os.close(end)
        # The end of a terminal is an error on Linux.
        with suppress(OSError):
            while part := os.read(terminal, 4096):
                shown += part
                if answer and b"Run it?" in shown:
                    os.write(terminal, answer.encode())
                    answer = ""
    os.close(terminal)
    return shown.decode()


def test_a_repeated_call_id_returns_the_result_of_the_approved_call(site: Any) -> None:
    site.tool("risky", schema=RISKY)
    assert site.run("build", **GOVERNED).returncode == 0
    call = ("call", "risky", TEXT, "--session", "s", "--call-id", "call_123456")
    waiting = site.run(*call, **GOVERNED)
    assert "CONFIRMATION_REQUIRED: nothing was run." in waiting.stderr
    approved = site.run(*call, "--yes", "--json", **GOVERNED)
    assert approved.returncode == 0
    again = site.run(*call, "--json", **GOVERNED)
    assert again.returncode == 0
    assert json.loads(again.stdout)["answer"] == json.loads(approved.stdout)["answer"]


def test_an_ineffective_call_id_is_refused_or_warned_about(site: Any) -> None:
    site.tool("echo")
    assert site.run("build", **GOVERNED).returncode == 0
    alone = site.run("call", "echo", TEXT, "--call-id", "call_123456", **GOVERNED)
    assert alone.returncode == 2
    assert "a call id is valid only in its session, so --call-id needs --session" in alone.stderr
    short = site.run("call", "echo", TEXT, "--session", "s", "--call-id", "42", **GOVERNED)
    assert short.returncode == 0
    assert short.stderr.startswith("The call id '42' is ignored, so repeating this call would run the tool")
    long = site.run("call", "echo", TEXT, "--session", "s", "--call-id", "call_123456", **GOVERNED)
    assert "is ignored" not in long.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--user", "bob"), "session s belongs to ada: omit --user, or use a different --session"),
        (("--mode", "text"), "session s is a voice session: omit --mode"),
        (("--user", "ada", "--mode", "voice"), ""),
        ((), ""),
    ],
)
def test_a_session_keeps_its_user_and_its_mode(site: Any, options: tuple[str, ...], reason: str) -> None:
    site.tool("echo")
    assert site.run("build", **GOVERNED).returncode == 0
    call = ("call", "echo", TEXT, "--session", "s")
    assert site.run(*call, "--user", "ada", "--mode", "voice", **GOVERNED).returncode == 0
    done = site.run(*call, *options, **GOVERNED)
    assert done.returncode == (2 if reason else 0), done.stderr
    assert reason in done.stderr


@pytest.mark.parametrize("option", ["--session", "--user", "--call-id"])
def test_an_empty_option_is_refused(site: Any, option: str) -> None:
    site.tool("echo")
    site.run("build")
    done = site.run("call", "echo", TEXT, option, "")
    assert done.returncode == 2
    assert "it is empty; omit the option instead" in done.stderr


def test_a_session_of_another_registry_is_refused_with_a_remedy(site: Any) -> None:
    site.tool("echo")
    assert site.run("build", **GOVERNED).returncode == 0
    call = ("call", "echo", TEXT, "--session", "s")
    assert site.run(*call, **GOVERNED).returncode == 0
    site.tool("other")
    assert site.run("build", **GOVERNED).returncode == 0
    assert re.search(
        r"pinned to registry .+; use a different --session\n", site.run(*call, **GOVERNED).stderr
    )


def test_data_goes_to_stdout_and_everything_else_to_stderr(site: Any) -> None:
    handler = (
        "from jackfield import Intent, ok\n\n\nasync def execute(args, ctx):\n"
        "    await ctx.messaging.send('farewell', words='Bye')\n"
        "    return ok({'said': 1}, Intent('END_VOICE_SESSION', {'after': 'current_turn'}))\n"
    )
    allow = {"JACKFIELD_ALLOW": "fab-*,jackfield-policies"}
    site.tool("echo", handler=handler)
    assert site.run("build", **allow).returncode == 0
    done = site.run("call", "echo", TEXT, "--mode", "voice", **allow)
    assert json.loads(done.stdout) == {"said": 1}
    assert done.stderr.splitlines()[:2] == [
        'intent END_VOICE_SESSION {"after": "current_turn"}',
        'event: farewell {"words": "Bye"}',
    ]


def test_incomplete_json_is_reported_with_its_place(site: Any) -> None:
    site.tool("echo")
    site.run("build")
    output = site.run("call", "echo", '{"text": "hello').stderr
    assert output.splitlines()[0].endswith("(line 1, column 10)")


@pytest.mark.parametrize(("schema", "output"), [(WRITES, True), ({}, False)], ids=["writes", "reads"])
def test_only_a_failed_write_warns_about_side_effects(
    site: Any, schema: dict[str, Any], output: bool
) -> None:
    site.tool("echo", schema=schema, handler="def execute(args, ctx):\n    raise RuntimeError('lost')\n")
    assert site.run("build").returncode == 0
    shown = site.run("call", "echo", TEXT).stderr
    assert "INTERNAL: The tool failed with an internal error." in shown
    assert ("The call may still have changed something." in shown) is output


def test_a_suggestion_of_several_lines_is_indented(site: Any) -> None:
    guide = (
        "# echo\n\nSays a text again.\n\n- `text`: what to say.\n- Keep `text` short.\n\n"
        '```json\n{"text": "x"}\n```\n'
    )
    site.tool("echo", guide=guide)
    assert site.run("build").returncode == 0
    output = site.run("call", "echo", "{}").stderr.splitlines()
    assert output[1:3] == ["  -> `text`: what to say.", "     Keep `text` short."]


def test_a_withheld_tool_is_shown_without_a_version(site: Any) -> None:
    site.tool("echo", schema={"requires": ["teleport"]})
    site.run("build")
    output = site.run("call", "echo", TEXT).stderr
    assert "'echo' is withheld: it needs teleport" in output
    assert re.search(r"^echo in [\d.]+ ms", output, re.MULTILINE)
