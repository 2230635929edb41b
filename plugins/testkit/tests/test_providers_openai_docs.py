"""The page on scripted providers is complete for OpenAI, and what it shows works."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from jackfield_testkit.providers.model import ScriptedModel
from jackfield_testkit.providers.openai import OpenAIServer
from jackfield_testkit.providers.playing import script_from_yaml
from jackfield_testkit.transport_contract import TransportContractTests

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the pages are in the repository only", allow_module_level=True)
PAGE = (DOCS / "testkit-providers.md").read_text("utf-8")
OPENAI = PAGE[PAGE.index("## OpenAI") :].partition("\n## Gemini")[0]
SOURCES = Path(inspect.getfile(OpenAIServer)).parent


def test_every_argument_of_the_server_is_documented() -> None:
    documented = set(re.findall(r"`\*?(\w+)`", "".join(re.findall(r"(?m)^\| (.*?) \|", OPENAI))))
    assert set(inspect.signature(OpenAIServer).parameters) <= documented


def test_every_verb_of_a_script_is_documented() -> None:
    verbs = [name for name in vars(ScriptedModel) if not name.startswith("_")]
    assert [verb for verb in verbs if f"`{verb}" not in PAGE] == []


def test_every_violation_is_documented() -> None:
    text = "".join(path.read_text("utf-8") for path in SOURCES.glob("*.py"))
    codes = {*re.findall(r'refuse\(\s*"(\w+)"', text), *re.findall(r'return "(invalid_\w+)"', text)}
    assert len(codes) > 5
    assert sorted(code for code in codes if f"`{code}`" not in OPENAI) == []


def test_the_example_in_yaml_is_a_script() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert callable(script_from_yaml(example))


def test_the_example_in_python_compiles() -> None:
    example = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    compile(example, "docs/testkit-providers.md", "exec")


def test_everything_a_suite_decides_is_documented() -> None:
    part = PAGE[PAGE.index("## Testing a transport") : PAGE.index("## OpenAI")]
    assert sorted(name for name in TransportContractTests.decides if name not in part) == []
