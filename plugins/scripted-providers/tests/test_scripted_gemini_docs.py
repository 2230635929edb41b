"""docs/testkit-providers.md documents all of GeminiServer, and its example runs."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest
from jackfield_scripted import ScriptedModel
from jackfield_scripted.gemini import GeminiOptions, GeminiServer, LiveModel, TextModel

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the pages are in the repository only", allow_module_level=True)
PAGE = (DOCS / "testkit-providers.md").read_text("utf-8")
GEMINI = PAGE[PAGE.index("\n## Gemini") :].lstrip("\n").split("\n## ")[0]


def test_every_argument_and_option_is_documented() -> None:
    documented = set(re.findall(r"`\*?(\w+)`", "".join(re.findall(r"(?m)^\| (.*?) \|", GEMINI))))
    assert set(inspect.signature(GeminiServer).parameters) <= documented
    assert {field.name for field in fields(GeminiOptions)} <= documented


def test_every_method_beyond_the_common_ones_is_documented() -> None:
    common = {*vars(ScriptedModel), "receive", "finish"}
    methods = {
        name
        for model in (LiveModel, TextModel)
        for name, value in vars(model).items()
        if inspect.isfunction(value) and not name.startswith("_") and name not in common
    }
    assert sorted(name for name in methods if f"`{name}(" not in GEMINI) == []


def test_example_runs(tmp_path: Path) -> None:
    if not find_spec("google") or not find_spec("google.genai"):
        pytest.skip("the example needs google-genai")
    (example,) = re.findall(r"```python\n(.*?)```", GEMINI, re.DOTALL)
    file = tmp_path / "example.py"
    file.write_text(example)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "You said: Hello.", done.stderr
