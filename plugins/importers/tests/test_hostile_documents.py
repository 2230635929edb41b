"""Documents are untrusted: whatever they contain, the generated files parse, and their strings stay data."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from importer_commands import jackfield
from jackfield_builder.tool_draft import ToolGuide
from jackfield_importers.family import ImportedFamily
from jackfield_importers.openapi.document import parse_document
from jackfield_importers.openapi.operations import OpenApiImport
from jackfield_importers.package_files import package_files
from markdown_it import MarkdownIt

ATTACKS = (
    '"""\nimport os; os.system("id")\n"""',
    "'); import os  # ",
    "\\",
    '"',
    "'''",
    "${x}",
    "{args}",
    "{0.__class__}",
    "```\n# delete_everything\n```json",
    "# heading",
    "\n# injected\n",
    "- [x] done",
    "1. one",
    "</script><script>",
    '"\n[project.scripts]\nx = "y"\n',
    "\x00",
    "\u2028# x",
    "\x85",
    "\ufeff",
    "../../etc/passwd",
    "%2e%2e",
    "a\rb",
    "[x](javascript:alert(1))",
    "<!--",
    "---",
    "===",
    "    code",
    "\t",
    "\u202e",
    "| a | b |",
    "__import__",
    "import",
)
text = st.one_of(
    st.sampled_from(ATTACKS), st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)
)
key = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="{}/?#"), min_size=1, max_size=20
)


def document(title: str, word: str, name: str, member: str, default: str) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": word},
        "servers": [{"url": f"https://example.com/{default}"}],
        "paths": {
            f"/{name}/{{{name}}}": {
                "post": {
                    "operationId": word,
                    "summary": title,
                    "description": default,
                    "parameters": [
                        {
                            "name": name,
                            "in": "path",
                            "required": True,
                            "description": word,
                            "schema": {"type": "string"},
                        },
                        {"name": member, "in": "query", "schema": {"type": "string", "default": default}},
                        {"name": f"h{member}", "in": "header", "schema": {"enum": [default, title]}},
                    ],
                    "requestBody": {
                        "required": True,
                        "content": {
                            "application/json": {
                                "schema": {"$ref": "#/components/schemas/Body"},
                                "example": {member: default},
                            }
                        },
                    },
                    "security": [{"key": []}],
                    "responses": {"200": {"description": word}},
                }
            }
        },
        "components": {
            "schemas": {
                "Body": {
                    "type": "object",
                    "description": title,
                    "required": [member],
                    "properties": {
                        member: {"type": "string", "title": word, "examples": [default]},
                        name: {
                            "type": "object",
                            "additionalProperties": {"type": "string", "description": word},
                        },
                        "free": {"type": "object", "description": default},
                    },
                }
            },
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": word}},
        },
    }


def literals(source: str) -> set[str]:
    """Return the strings of a module; every other node must be of a kind that generated modules have."""
    allowed = (
        ast.Module,
        ast.Expr,
        ast.Constant,
        ast.ImportFrom,
        ast.alias,
        ast.AsyncFunctionDef,
        ast.arguments,
        ast.arg,
        ast.Return,
        ast.Await,
        ast.Call,
        ast.Attribute,
        ast.Name,
        ast.Load,
        ast.Store,
        ast.Tuple,
        ast.keyword,
        ast.Dict,
        ast.Assign,
    )
    tree = ast.parse(source)
    assert {type(node) for node in ast.walk(tree)} <= set(allowed)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            assert node.id in {"_http", "_API", "args", "Api", "API", "Credential"}
        if isinstance(node, ast.Attribute):
            assert node.attr in {"call", "Operation", "Parameter"}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def check_files(family: ImportedFamily, files: dict[str, str]) -> None:
    package = f"src/{family.package}"
    (tool,) = family.tools
    schema = json.loads(files[f"{package}/schema.json"])
    assert list(schema["tools"]) == [tool.tool_id]
    project = tomllib.loads(files["pyproject.toml"])
    assert project["project"].keys() == {
        "name", "version", "description", "readme", "requires-python", "dependencies", "entry-points",
    }  # fmt: skip
    assert project["project"]["entry-points"] == {"jackfield.families": {family.name: family.package}}
    found = literals(files[f"{package}/handler.py"])
    assert tool.tool_id in found
    literals(files[f"{package}/api.py"])
    guide = files[f"{package}/guide.md"]
    tokens = MarkdownIt("commonmark").parse(guide)
    headings = [tokens[index + 1].content for index, each in enumerate(tokens) if each.type == "heading_open"]
    assert headings == [tool.tool_id, "Examples"]
    assert {each.type for each in tokens if not each.type.startswith(("paragraph", "heading", "inline"))} == {
        "fence"
    }
    assert not [
        each for each in tokens for child in each.children or () if child.type in {"html_inline", "link_open"}
    ]
    parsed = ToolGuide.parse(guide)
    assert [json.loads(each.text) for each in parsed.calls] == tool.examples
    assert 0 < len(parsed.summary) <= 250
    for name in ("README.md", "REVIEW.md"):
        kinds = {each.type for each in MarkdownIt("commonmark").parse(files[name])}
        assert not kinds & {"html_block", "code_block", "fence"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(title=text, word=text, name=key, member=key, default=text)
@example('"""', "'''", "\\'", '"', "\n# x\n")
@example("# x", "import", "id", "id", '```\n# other\n```json\n{"a": 1}')
@example("7", "7", "0", "0", "0")
def test_hostile_strings_stay_data(title: str, word: str, name: str, member: str, default: str) -> None:
    family = OpenApiImport(document(title, word, name, member, default)).family()
    files = package_files(family)
    check_files(family, files)
    schema = json.loads(files[f"src/{family.package}/schema.json"])
    (tool,) = schema["tools"].values()
    assert len(tool["parameters"]["properties"]) >= 3


def test_a_hostile_document_gives_a_package_that_passes_every_check(tmp_path: Any) -> None:
    given = document('"""\nimport os\n# x', "'); import os", "a'b\"c", "x\ny", "```\n# other\n")
    (tmp_path / "api.json").write_text(json.dumps(given), "utf-8")
    done = jackfield("import", "openapi", tmp_path / "api.json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert set(re.findall(r"JF\d+", done.output)) <= {"JF406"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_attack_survives_a_round_trip_as_a_default(attack: str) -> None:
    given = document("API", "send", "id", "note", attack)
    data = parse_document(json.dumps(given).encode(), "api.json")
    family = OpenApiImport(data).family()
    files = package_files(family)
    schema = json.loads(files[f"src/{family.package}/schema.json"])
    assert schema["tools"]["send"]["parameters"]["properties"]["note"]["default"] == attack
