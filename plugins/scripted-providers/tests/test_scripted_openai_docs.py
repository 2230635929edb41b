"""docs/testkit-providers.md documents all of OpenAIServer, and its examples work."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from jackfield_scripted import ScriptedModel, script_from_yaml
from jackfield_scripted.openai import OpenAIServer

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the pages are in the repository only", allow_module_level=True)
PAGE = (DOCS / "testkit-providers.md").read_text("utf-8")
OPENAI = PAGE[PAGE.index("## OpenAI") :].partition("\n## Gemini")[0]
SOURCES = Path(inspect.getfile(OpenAIServer)).parent


def test_every_argument_of_the_server_is_documented() -> None:
    documented = set(re.findall(r"`\*?(\w+)`", "".join(re.findall(r"(?m)^\| (.*?) \|", OPENAI))))
    assert set(inspect.signature(OpenAIServer).parameters) <= documented


def test_every_method_of_a_scripted_model_is_documented() -> None:
    methods = [name for name in vars(ScriptedModel) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}" not in PAGE] == []


def test_every_violation_is_documented() -> None:
    text = "".join(path.read_text("utf-8") for path in SOURCES.glob("*.py"))
    codes = {*re.findall(r'reject\(\s*"(\w+)"', text), *re.findall(r'return "(invalid_\w+)"', text)}
    assert len(codes) > 5
    assert sorted(code for code in codes if f"`{code}`" not in OPENAI) == []


def test_yaml_example_is_a_script() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert callable(script_from_yaml(example))


def test_python_example_compiles() -> None:
    example = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    compile(example, "docs/testkit-providers.md", "exec")
