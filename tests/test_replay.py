"""`jackfield replay` with the exported transcript of a real conversation."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit.command_server import start_command

ALLOW = (
    "fab-*,jackfield-client,jackfield-host,jackfield-policies,jackfield-store-sqlite,jackfield-transport-*"
)
READS: dict[str, Any] = {"category": "retrieval", "sideEffects": "read_only"}
WRITES: dict[str, Any] = {
    "category": "action",
    "sideEffects": "writes",
    "idempotent": False,
    "requiresConfirmation": False,
}
HANDLER = """import asyncio
from pathlib import Path

from jackfield import ok


async def execute(args, ctx):
    with Path("ran.txt").open("a") as file:
        file.write("{tool}\\n")
    {body}
"""
COUNTS = 'return ok({"words": len(args["text"].split()), "first": {"word": args["text"].split()[0]}})'
COUNTS_LETTERS = 'return ok({"words": len(args["text"]), "first": {"word": args["text"].split()[0]}})'
NOTES = 'return ok({"noted": args["text"]})'
DELEGATES = 'return ok({"answer": (await ctx.call_tool("fab_note", {"text": args["text"]})).ok})'
HANGS = "await asyncio.sleep(3600)"
WAITS = 'return ok({"done": True})'


def handler(tool: str, body: str) -> str:
    return HANDLER.replace("{tool}", tool).replace("{body}", body)


async def run(folder: Path, *arguments: str, lines: str = "") -> tuple[int, str, str]:
    """Run `jackfield` with these lines as its input; return its exit status and output."""
    environ = {**os.environ, "FAB_KEY": "k", "NO_COLOR": "1", "JACKFIELD_ALLOW": ALLOW}
    process = await start_command(
        [*arguments], cwd=folder, env=environ,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate(lines.encode())
    return process.returncode or 0, out.decode(), err.decode()


async def converse(folder: Path) -> None:
    """Call every tool in a conversation, and export its transcript."""

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        for tool in ("fab_count", "fab_note", "fab_delegate", "fab_wait", "fab_gone"):
            await model.calls(ScriptedCall(tool, {"text": "one two"}))
        await model.says("Done.")

    async with OpenAIServer(script) as server:
        (folder / "jackfield.toml").write_text(
            f'provider = "openai"\n[transports.openai]\nbase_url = "{server.base_url}"\n'
            'api_key_env = "FAB_KEY"\nretries = 0\n'
        )
        status, _, err = await run(folder, "chat", "--user", "ada", lines="go\n")
        assert status == 0, err
    (session,) = json.loads((await run(folder, "sessions", "list", "--json"))[1])
    status, _, err = await run(folder, "sessions", "export", session["id"], "-o", "transcript.jsonl")
    assert status == 0, err


def test_a_transcript_shows_differing_answers_and_no_effect_takes_place(site: Any, tmp_path: Path) -> None:
    bodies = {"count": COUNTS, "note": NOTES, "delegate": DELEGATES, "wait": WAITS, "gone": WAITS}
    handlers: dict[str, Path] = {}
    for name, body in bodies.items():
        package: Path = site.tool(f"fab_{name}", **(WRITES if name == "note" else READS))
        handlers[name] = package / "handler.py"
        handlers[name].write_text(handler(name, body))
    ran = tmp_path / "ran.txt"

    async def main() -> tuple[Any, str, Any]:
        built = await run(tmp_path, "build")
        assert built[0] == 0, built[2]
        await converse(tmp_path)
        assert ran.read_text().split() == ["count", "note", "delegate", "note", "wait", "gone"]
        ran.unlink()
        for name, body in (("count", COUNTS_LETTERS), ("wait", HANGS)):
            handlers[name].write_text(handler(name, body))
        built = await run(tmp_path, "build", "--registry", "new.json", "--deny", "fab-fab-gone")
        assert built[0] == 0, built[2]
        replay = ("replay", "transcript.jsonl", "--against", "new.json")
        plain = await run(tmp_path, *replay)
        assert not ran.exists(), "nothing runs unless answers are compared"
        compared = await run(tmp_path, *replay, "--answers", "--deadline", "2", "--json")
        return plain, ran.read_text(), compared

    plain, executed, compared = asyncio.run(main())
    assert (plain[0], plain[2]) == (1, "")
    assert "fab_gone: 1 call\n  1 would be unknown\n" in plain[1]
    assert "5 calls replayed" in plain[1]
    assert "4 unchanged, 1 reported" in plain[1]

    # Tools that write do not run, even when nested; a read that times out is retried once, as on a host.
    assert executed.split() == ["count", "delegate", "wait", "wait"]
    report = json.loads(compared[1])
    found = {each["tool"]: (each["change"], each["paths"], each["detail"]) for each in report["changes"]}
    assert found["fab_count"] == ("differs", ["/words"], "the result differs")
    assert found["fab_delegate"] == ("differs", ["/answer"], "the result differs")
    assert found["fab_wait"][0] == "differs"
    assert "now fails with TRANSIENT" in found["fab_wait"][2]
    assert report["tools"]["fab_note"] == {"same": 1}
    assert compared[0] == 1
