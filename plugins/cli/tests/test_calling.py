"""`jackfield call`: whatever the person at the shell does, nothing is lost, doubled or told wrongly."""

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

# Runs until a file lets it go on, so that whoever stops it does so in the middle.
PATIENT = """import asyncio
from pathlib import Path

from jackfield import ok


async def execute(args, ctx):
    with Path("began").open("a") as file:
        file.write("once\\n")
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return ok({"said": args["text"]})
"""


def started(site: Any, *arguments: str, **options: Any) -> subprocess.Popen[str]:
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
def test_a_write_that_is_interrupted_comes_to_its_end(site: Any, signalled: int) -> None:
    folder = patient(site, **WRITES)
    with started(site, *CALL) as process:
        wait_for(folder / "began", process)
        process.send_signal(signalled)
        assert process.stderr is not None
        assert process.stderr.readline() == (
            "patient writes, and is left to finish; Ctrl-C again gives it up.\n"
        )
        (folder / "go").touch()
        shown, _ = process.communicate()
    assert (process.returncode, json.loads(shown)) == (0, {"said": "hello"})


def test_a_write_that_is_given_up_says_so_now_and_to_whoever_asks_again(site: Any) -> None:
    folder = patient(site, **WRITES)
    with started(site, *CALL) as process:
        wait_for(folder / "began", process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 1
    assert "TRANSIENT: The user interrupted" in told
    assert "It may have changed something all the same." in told
    again = site.run(*CALL, **GOVERNED)
    assert again.stderr.splitlines()[:2] == told.splitlines()[:2]
    assert "patient 1.0.0 answered before, in" in again.stderr
    assert (folder / "began").read_text() == "once\n"


def test_a_read_that_is_interrupted_is_stopped_and_answered(site: Any) -> None:
    folder = patient(site, timeoutMs=600_000)
    with started(site, *CALL) as process:
        wait_for(folder / "began", process)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 1
    assert told.startswith("TRANSIENT: The user interrupted, and the tool was stopped")
    assert "changed something" not in told


SLOW_POLICY = """import asyncio
from pathlib import Path

from jackfield import hookimpl
from jackfield.offers import PolicyOffer, Stage


class Slow:
    def applies_to(self, tool, session):
        return True

    async def apply(self, call, proceed):
        Path("began").touch()
        while not Path("go").exists():
            await asyncio.sleep(0.01)
        return await proceed(call)


@hookimpl
def jackfield_policies():
    return [PolicyOffer("slow", Stage.ADMIT, 1, lambda *_: Slow())]
"""


def test_a_call_that_a_policy_holds_up_is_given_up_by_the_second_ctrl_c(site: Any) -> None:
    site.plugin("fab-slow", SLOW_POLICY)
    folder = patient(site, **WRITES)
    with started(site, *CALL) as process:
        wait_for(folder / "began", process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.readline() == "There is no answer yet; Ctrl-C again gives it up.\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 1
    assert "Given up before there was an answer." in told
    assert "Traceback" not in told


def test_a_handler_that_blocks_everything_is_ended_by_the_third_ctrl_c(site: Any) -> None:
    blocking = PATIENT.replace("await asyncio.sleep(0.01)", "__import__('time').sleep(0.01)")
    site.tool("patient", schema=WRITES, handler=blocking)
    assert site.run("build", **GOVERNED).returncode == 0
    folder: Path = site.folder.parent
    with started(site, *CALL) as process:
        wait_for(folder / "began", process)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        process.communicate()
    assert process.returncode != 0


def test_a_closed_standard_input_is_nobody_to_ask(site: Any) -> None:
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


def test_json_asks_nobody_and_does_not_send_to_a_terminal(site: Any) -> None:
    site.tool("risky", schema=RISKY)
    assert site.run("build", **GOVERNED).returncode == 0
    told = site.run("call", "risky", TEXT, "--json", **GOVERNED).stderr
    assert told == "This needs a person's approval, and --json asks nobody: approve with --yes.\n"


@pytest.mark.parametrize(
    ("answer", "told"),
    [("\x04", "Nothing was run."), ("n\n", "Declined; nothing was run.")],
    ids=["end", "no"],
)
def test_a_question_that_is_not_answered_with_yes_says_that_nothing_was_run(
    site: Any, answer: str, told: str
) -> None:
    site.tool("risky", schema=RISKY)
    assert site.run("build", **GOVERNED).returncode == 0
    assert told in on_a_terminal(site, answer, "call", "risky", TEXT)


def test_a_question_that_was_open_too_long_is_not_called_declined(site: Any) -> None:
    site.tool("risky", schema=RISKY)
    assert site.run("build", **GOVERNED).returncode == 0
    (site.folder.parent / "jackfield.toml").write_text("[policies.confirmation]\nexpiry_seconds = 0.001\n")
    shown = on_a_terminal(site, "y\n", "call", "risky", TEXT)
    assert "The question was open for too long; nothing was run. Call again." in shown
    assert "Declined" not in shown


def on_a_terminal(site: Any, answer: str, *arguments: str) -> str:
    """What a person sees who gives this answer to the question."""
    shown = b""
    terminal, end = pty.openpty()
    with started(site, *arguments, stdin=end, stdout=end, stderr=end):
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


def test_a_repeated_call_id_gets_the_outcome_of_the_approved_call(site: Any) -> None:
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


def test_a_call_id_that_does_not_keep_a_call_from_running_twice_is_not_taken_quietly(site: Any) -> None:
    site.tool("echo")
    assert site.run("build", **GOVERNED).returncode == 0
    alone = site.run("call", "echo", TEXT, "--call-id", "call_123456", **GOVERNED)
    assert alone.returncode == 2
    assert "--call-id is known in its session alone, so it needs --session" in alone.stderr
    short = site.run("call", "echo", TEXT, "--session", "s", "--call-id", "42", **GOVERNED)
    assert short.returncode == 0
    assert short.stderr.startswith("The id '42' does not hold: the same call with it is run again.")
    long = site.run("call", "echo", TEXT, "--session", "s", "--call-id", "call_123456", **GOVERNED)
    assert "does not hold" not in long.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--user", "bob"), "session s is ada's: leave --user out, or begin another --session"),
        (("--mode", "text"), "session s is a voice session: leave --mode out"),
        (("--user", "ada", "--mode", "voice"), ""),
        ((), ""),
    ],
)
def test_a_session_stays_its_users_and_in_its_mode(site: Any, options: tuple[str, ...], reason: str) -> None:
    site.tool("echo")
    assert site.run("build", **GOVERNED).returncode == 0
    call = ("call", "echo", TEXT, "--session", "s")
    assert site.run(*call, "--user", "ada", "--mode", "voice", **GOVERNED).returncode == 0
    done = site.run(*call, *options, **GOVERNED)
    assert done.returncode == (2 if reason else 0), done.stderr
    assert reason in done.stderr


@pytest.mark.parametrize("option", ["--session", "--user", "--call-id"])
def test_a_name_that_a_script_left_empty_is_refused(site: Any, option: str) -> None:
    site.tool("echo")
    site.run("build")
    done = site.run("call", "echo", TEXT, option, "")
    assert done.returncode == 2
    assert "it is empty; leave the option out where there is none" in done.stderr


def test_a_session_of_another_registry_says_what_to_do(site: Any) -> None:
    site.tool("echo")
    assert site.run("build", **GOVERNED).returncode == 0
    call = ("call", "echo", TEXT, "--session", "s")
    assert site.run(*call, **GOVERNED).returncode == 0
    site.tool("other")
    assert site.run("build", **GOVERNED).returncode == 0
    assert re.search(r"pinned to registry .+; begin another --session\n", site.run(*call, **GOVERNED).stderr)


def test_standard_output_is_the_data_and_the_rest_is_told_beside_it(site: Any) -> None:
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
        'told the client: farewell {"words": "Bye"}',
    ]


def test_json_that_is_cut_off_is_told_with_its_place(site: Any) -> None:
    site.tool("echo")
    site.run("build")
    told = site.run("call", "echo", '{"text": "hello').stderr
    assert told.splitlines()[0].endswith("(line 1, column 10)")


@pytest.mark.parametrize(("schema", "told"), [(WRITES, True), ({}, False)], ids=["writes", "reads"])
def test_only_a_tool_that_writes_may_have_changed_something(
    site: Any, schema: dict[str, Any], told: bool
) -> None:
    site.tool("echo", schema=schema, handler="def execute(args, ctx):\n    raise RuntimeError('lost')\n")
    assert site.run("build").returncode == 0
    shown = site.run("call", "echo", TEXT).stderr
    assert "INTERNAL: The tool failed with an internal error." in shown
    assert ("It may have changed something all the same." in shown) is told


def test_a_suggestion_of_several_lines_stays_one(site: Any) -> None:
    guide = (
        "# echo\n\nSays a text again.\n\n- `text`: what to say.\n- Keep `text` short.\n\n"
        '```json\n{"text": "x"}\n```\n'
    )
    site.tool("echo", guide=guide)
    assert site.run("build").returncode == 0
    told = site.run("call", "echo", "{}").stderr.splitlines()
    assert told[1:3] == ["  -> `text`: what to say.", "     Keep `text` short."]


def test_a_tool_that_is_not_offered_is_called_nothing_but_its_name(site: Any) -> None:
    site.tool("echo", schema={"requires": ["teleport"]})
    site.run("build")
    told = site.run("call", "echo", TEXT).stderr
    assert "'echo' is withheld: it needs teleport" in told
    assert re.search(r"^echo in [\d.]+ ms", told, re.MULTILINE)
