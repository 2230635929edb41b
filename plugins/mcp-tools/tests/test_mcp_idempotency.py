"""A server gets the idempotency key of a write, so that one that knows keys runs a repeated call once."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from jackfield_testkit import ToolTestContext
from jackfield_testkit.command_server import run_command
from jackfield_testkit.site_packages import SitePackages
from shop_deployment import Shop

KEY = "jackfield/idempotencyKey"

HANDLER = """\
import pathlib

from jackfield import ok


async def execute(args, ctx):
    with pathlib.Path("payments.txt").open("a") as journal:
        journal.write(args["text"] + "\\n")
    return ok({"paid": args["text"], "payments": len(pathlib.Path("payments.txt").read_text().split())})
"""

SCHEMA: dict[str, Any] = {
    "description": "Pays somebody.",
    "category": "action",
    "sideEffects": "writes",
    "idempotent": False,
    "requiresConfirmation": False,
    "parameters": {
        "type": "object",
        "additionalProperties": False,
        "required": ["text"],
        "properties": {"text": {"type": "string", "description": "Who gets it.", "maxLength": 50}},
    },
}


async def test_a_write_has_a_key_that_reveals_nothing_and_a_read_has_none(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.freeze()
    async with shop.host() as host:
        first, second = [json.loads((await host.call("show_meta")).data["text"])[KEY] for _ in range(2)]
        read = json.loads((await host.call("read_meta")).data["text"])
        assert first != second
        assert len(bytes.fromhex(first)) == 32
        assert host.session.id not in first
        assert KEY not in (read or {})


def jackfield_server(tmp_path: Path) -> Shop:
    """Return a deployment whose server is Jackfield itself."""
    upstream = tmp_path / "upstream"
    upstream.mkdir()
    site = SitePackages(tmp_path / "site")
    site.tool("pay", distribution="mcp-pay", schema=SCHEMA, handler=HANDLER)
    (upstream / "jackfield.toml").write_text(
        'store = "memory"\nallow = ["mcp-pay", "jackfield-mcp-server", "jackfield-policies"]\n'
    )
    environment = {"PYTHONPATH": str(site.folder)}
    built = run_command(["build"], cwd=upstream, env={**os.environ, **environment})
    assert built.returncode == 0, built.stderr
    program = (sys.executable, "-m", "jackfield_cli", "mcp")
    shop = Shop(tmp_path, command=program, environment=environment, tools={})
    shop.server["folder"] = str(upstream)
    shop.freeze()
    return shop


async def test_a_jackfield_server_runs_a_repeated_write_once(tmp_path: Path) -> None:
    shop = jackfield_server(tmp_path)

    async with shop.host() as host:
        paid = (await host.call("pay", text="ada")).data
        answers = [
            await host.servers.call("shop__pay", {"text": "bob"}, ToolTestContext(), key)
            for key in ("k1", "k1", "k2")
        ]
    assert paid["payments"] == 1
    assert [answer.data["payments"] for answer in answers] == [2, 2, 3]
    assert (tmp_path / "upstream" / "payments.txt").read_text().split() == ["ada", "bob", "bob"]
