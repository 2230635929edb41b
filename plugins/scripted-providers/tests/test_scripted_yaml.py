"""Scripts in YAML: steps become method calls, and invalid scripts are rejected before they start."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield_scripted import ScriptedCall, ScriptError, script_from_yaml

BAD = {
    "": "a list of steps",
    "hears": "a list of steps",
    "- [": "not valid YAML",
    "- hears": "step 1: 'hears' is not one method",
    "- says: Hello.\n- sings: La": "step 2: {'sings': 'La'} is not one method",
    "- _abc_impl: 1": "step 1",
    "- says: {txt: Hello.}": "step 1: says: missing a required argument: 'text'",
    "- says: [one, two, three]": "step 1: says: too many positional arguments",
    "- says: {}": "step 1: says: missing a required argument: 'text'",
    "- calls: 5": "step 1: calls takes a list",
    "- calls: [5]": "step 1: 5 is not a tool",
}


@pytest.mark.parametrize("text", BAD)
def test_invalid_script_is_rejected_with_the_number_of_the_step(text: str) -> None:
    with pytest.raises(ScriptError) as refused:
        script_from_yaml(text)
    assert BAD[text] in str(refused.value)


def test_steps_become_calls_of_model_methods() -> None:
    done: list[Any] = []

    class Model:
        def __getattr__(self, method: str) -> Any:
            async def note(*given: Any, **named: Any) -> None:
                done.append((method, given, named))

            return note

    script = script_from_yaml(
        "- hears:\n- says: Hello.\n- speaks: {text: Once, ms: 500}\n- cancels: [a, b]\n"
        "- calls: [{kb_get: {ids: [x]}}, {tool: kb_get, arguments: '{', id: c1}]\n"
    )
    model: Any = Model()
    asyncio.run(_play(script, model))
    assert done == [
        ("hears", (), {}),
        ("says", ("Hello.",), {}),
        ("speaks", (), {"text": "Once", "ms": 500}),
        ("cancels", ("a", "b"), {}),
        ("calls", (ScriptedCall("kb_get", {"ids": ["x"]}), ScriptedCall("kb_get", "{", "c1")), {}),
    ]


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_command_prints_its_address_and_stops_on_sigterm(provider: str, tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("- says: Hello.\n")
    (tmp_path / "bad.yaml").write_text("- says: {}\n")
    command = [sys.executable, "-m", "jackfield_scripted", provider]
    with subprocess.Popen(
        [*command, "script.yaml"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        address = server.stdout.readline()
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=60)
    assert "://127.0.0.1:" in address
    assert (server.returncode, errors) == (0, "")
    refused = subprocess.run(
        [*command, "bad.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 2
    assert "bad.yaml: step 1: says: missing" in refused.stderr


async def _play(script: Any, model: Any) -> None:
    await script(model)
