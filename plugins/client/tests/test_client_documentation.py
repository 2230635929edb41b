"""The page on clients is correct: its example runs, its browser code parses, its close codes exist."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from client_hosts import Deployment
from jackfield.protocol.close_codes import CLOSE_REASONS
from jackfield_client.session import ClientSession
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_scripted.openai import OpenAIServer

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the documentation is only in the repository", allow_module_level=True)
PAGE = (DOCS / "client.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_python_example_runs_with_a_confirmation(deployment: Deployment) -> None:
    (deployment.folder / "example.py").write_text(blocks("python")[0])

    async def script(model: ScriptedModel) -> None:
        assert (await model.hears()).text == "Book a table for two."
        await model.calls(ScriptedCall("cli_book", {"text": "a table for two"}))
        await model.says("May I?")
        await model.hears()
        await model.says("It is booked.")

    async def main() -> str:
        async with OpenAIServer(script) as server, deployment.host(server) as url:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "example.py", url, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await asyncio.wait_for(process.communicate(), 60)
            assert process.returncode == 0
            return out.decode()

    shown = asyncio.run(main())
    assert re.fullmatch(
        r"May I\?\nBook a table for two\?\n\n\[cli_book took \d+ ms\]\nIt is booked\.\n", shown
    ), shown
    assert deployment.effects() == ["cli_book a table for two"]


def test_every_close_code_and_every_method_is_documented() -> None:
    protocol = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text("utf-8")
    for reason in CLOSE_REASONS:
        assert f"| {reason.code} | `{reason.name}` |" in protocol, reason
    methods = {name for name, each in vars(ClientSession).items() if asyncio.iscoroutinefunction(each)}
    for method in {name for name in methods if not name.startswith("_")}:
        assert f"`{method}(" in PAGE, method


def test_the_browser_example_is_valid_javascript(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (tmp_path / "page.mjs").write_text(blocks("javascript")[0])
    checked = subprocess.run(
        [node, "--check", "page.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
