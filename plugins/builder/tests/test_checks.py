"""Every check of the build, each with a package that is broken in one way, all in one run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jackfield_builder.findings import CheckCode
from jackfield_builder.tool_files import FileProblem, parse_object


class Broken(NamedTuple):
    """A package with one fault: the expected code and place, and the files that cause it."""

    code: CheckCode
    place: tuple[str, str]
    files: dict[str, Any]


def parameters(properties: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    """Return parameters with one more argument, for which the guide's example is still valid."""
    text = {"type": "string", "description": "What to say."}
    closed = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"text": text, **properties},
        **keywords,
    }
    return {"parameters": closed}


def schema(**fields: Any) -> dict[str, Any]:
    return {"schema": fields}


def argument(**keywords: Any) -> dict[str, Any]:
    return {"schema": parameters({"a": {"type": "string", "description": "An argument.", **keywords}})}


def guide(text: str) -> dict[str, Any]:
    return {"guide": text}


def example(block: str, tag: str = "json") -> dict[str, Any]:
    return guide(f"# echo\n\nSays a text again.\n\n```json\n{{}}\n```\n\n```{tag}\n{block}\n```\n")


NESTED = '{"a": ' * 80 + "1" + "}" * 80
A = "/parameters/properties/a"

BROKEN: dict[str, Broken] = {
    # a schema that nothing satisfies
    "no_value": Broken(
        CheckCode.UNSATISFIABLE, ("schema.json", A), argument(type="integer", enum=["one", "two"])
    ),
    "no_number": Broken(
        CheckCode.UNSATISFIABLE, ("schema.json", A), argument(type="number", minimum=5, maximum=3)
    ),
    "no_result": Broken(
        CheckCode.UNSATISFIABLE,
        ("schema.json", "/returns"),
        schema(returns={"type": "string", "allOf": [{"type": "null"}]}),
    ),
    # files
    "no_schema": Broken(CheckCode.SCHEMA_MISSING, ("schema.json", ""), {"schema": None}),
    "no_guide": Broken(CheckCode.GUIDE_MISSING, ("guide.md", ""), {"guide": None}),
    "no_handler": Broken(CheckCode.HANDLER_MISSING, ("handler.py", ""), {"handler": None}),
    "latin_1": Broken(CheckCode.NOT_UTF8, ("guide.md", "line 3"), {"guide": b"# echo\n\nCaf\xe9.\n"}),
    "huge_schema": Broken(CheckCode.TOO_LARGE, ("schema.json", ""), schema(description="x" * 1_000_000)),
    # JSON
    "not_json": Broken(CheckCode.BAD_JSON, ("schema.json", "line 2, column 1"), {"schema": '{"toolId":\n}'}),
    "key_twice": Broken(
        CheckCode.DUPLICATE_KEY, ("schema.json", "/a/b"), {"schema": '{"a": {"b": 1, "b": 2}}'}
    ),
    "not_a_number": Broken(CheckCode.BAD_NUMBER, ("schema.json", "/a"), {"schema": '{"a": NaN}'}),
    "huge_number": Broken(
        CheckCode.BAD_NUMBER, ("schema.json", "/a"), {"schema": '{"a": 99999999999999999999}'}
    ),
    "endless_number": Broken(CheckCode.BAD_NUMBER, ("schema.json", "/a"), {"schema": '{"a": 1e999}'}),
    "half_character": Broken(CheckCode.BAD_TEXT, ("schema.json", "/a"), {"schema": '{"a": "\\ud800"}'}),
    "deep": Broken(CheckCode.TOO_DEEP, ("schema.json", "/a/a/a"), {"schema": NESTED}),
    "bottomless": Broken(CheckCode.TOO_DEEP, ("schema.json", "/"), {"schema": "[" * 100_000}),
    "a_list": Broken(CheckCode.NOT_AN_OBJECT, ("schema.json", "/"), {"schema": "[]"}),
    # manifest
    "no_category": Broken(CheckCode.FIELD_MISSING, ("schema.json", "/"), schema(category=...)),
    "misspelt": Broken(CheckCode.FIELD_UNKNOWN, ("schema.json", "/latencyBudget"), schema(latencyBudget=5)),
    "worded_flag": Broken(CheckCode.FIELD_TYPE, ("schema.json", "/idempotent"), schema(idempotent="yes")),
    "odd_category": Broken(CheckCode.FIELD_VALUE, ("schema.json", "/category"), schema(category="magic")),
    "no_modes": Broken(CheckCode.FIELD_BOUNDS, ("schema.json", "/allowedModes"), schema(allowedModes=[])),
    "no_time": Broken(CheckCode.FIELD_BOUNDS, ("schema.json", "/latencyBudgetMs"), schema(latencyBudgetMs=0)),
    "short_version": Broken(CheckCode.NOT_SEMVER, ("schema.json", "/version"), schema(version="1.0")),
    "Camel_case": Broken(CheckCode.NOT_SNAKE_CASE, ("schema.json", "/toolId"), {}),
    "other_id": Broken(CheckCode.ID_MISMATCH, ("schema.json", "/toolId"), schema(toolId="another")),
    "odd_preview": Broken(CheckCode.BAD_PREVIEW, ("schema.json", "/preview"), schema(preview="Say {txt}?")),
    "sly_preview": Broken(
        CheckCode.BAD_PREVIEW, ("schema.json", "/preview"), schema(preview="Say {text!r:>9}?")
    ),
    "odd_says": Broken(CheckCode.BAD_SAYS, ("schema.json", "/says/1"), schema(says=["said", "I said"])),
    "late_says": Broken(CheckCode.BAD_SAYS, ("schema.json", "/says/0"), schema(says=["saying aloud"])),
    "open_preview": Broken(CheckCode.BAD_PREVIEW, ("schema.json", "/preview"), schema(preview="Say {text")),
    # rules
    "fickle": Broken(
        CheckCode.RETRIEVAL_NOT_IDEMPOTENT,
        ("schema.json", "/idempotent"),
        schema(category="retrieval", idempotent=False),
    ),
    "writing": Broken(
        CheckCode.RETRIEVAL_WRITES,
        ("schema.json", "/sideEffects"),
        schema(category="retrieval", sideEffects="writes"),
    ),
    "unasked": Broken(
        CheckCode.UNCONFIRMED_WRITE,
        ("schema.json", "/requiresConfirmation"),
        schema(category="action", sideEffects="writes"),
    ),
    "sluggish": Broken(
        CheckCode.SLOW_RETRIEVAL,
        ("schema.json", "/latencyBudgetMs"),
        schema(category="retrieval", latencyBudgetMs=900),
    ),
    "hasty": Broken(CheckCode.BUDGET_OVER_TIMEOUT, ("schema.json", "/latencyBudgetMs"), schema(timeoutMs=50)),
    "bare_card": Broken(
        CheckCode.NO_PREVIEW, ("schema.json", "/preview"), schema(requiresConfirmation="policy")
    ),
    "needy": Broken(
        CheckCode.CAPABILITY_MISSING, ("schema.json", "/requires/0"), schema(requires=["telepathy"])
    ),
    # parameters
    "odd_type": Broken(CheckCode.BAD_SCHEMA, ("schema.json", f"{A}/type"), argument(type="strin")),
    "a_string": Broken(
        CheckCode.NOT_OBJECT_SCHEMA,
        ("schema.json", "/parameters/type"),
        schema(parameters={"type": ["object", "null"], "additionalProperties": False}),
    ),
    "open_nested": Broken(
        CheckCode.OPEN_OBJECT,
        ("schema.json", A),
        argument(type="object", properties={}, additionalProperties=True),
    ),
    "open_map": Broken(
        CheckCode.OPEN_OBJECT,
        ("schema.json", A),
        argument(type="object", additionalProperties={"type": "string"}),
    ),
    "open_item": Broken(
        CheckCode.OPEN_OBJECT,
        ("schema.json", f"{A}/items"),
        argument(type="array", items={"type": "object", "additionalProperties": True}),
    ),
    "odd_format": Broken(
        CheckCode.UNKNOWN_FORMAT, ("schema.json", f"{A}/format"), argument(format="postcode")
    ),
    "far_reference": Broken(
        CheckCode.BAD_REFERENCE,
        ("schema.json", f"{A}/$ref"),
        argument(**{"$ref": "https://example.org/schema"}),
    ),
    "lost_reference": Broken(
        CheckCode.BAD_REFERENCE, ("schema.json", f"{A}/$ref"), argument(**{"$ref": "#/$defs/gone"})
    ),
    "circle": Broken(
        CheckCode.CIRCULAR_REFERENCE,
        ("schema.json", A),
        schema(
            **parameters({"a": {"$ref": "#/$defs/x"}}, **{"$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}]}}})
        ),
    ),
    "wrong_default": Broken(CheckCode.BAD_DEFAULT, ("schema.json", f"{A}/default"), argument(default=5)),
    "endless_default": Broken(
        CheckCode.BAD_DEFAULT,
        ("schema.json", "/parameters/$defs/node/properties/next/default"),
        schema(
            **parameters(
                {"a": {"$ref": "#/$defs/node"}},
                **{
                    "$defs": {
                        "node": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {"next": {"$ref": "#/$defs/node", "default": {}}},
                        }
                    }
                },
            )
        ),
    ),
    "phantom": Broken(
        CheckCode.UNDEFINED_REQUIRED,
        ("schema.json", f"{A}/required"),
        argument(type="object", additionalProperties=False, required=["ghost"]),
    ),
    "idle_default": Broken(
        CheckCode.UNUSED_DEFAULT,
        ("schema.json", f"{A}/properties/b/default"),
        argument(
            type="object",
            additionalProperties=False,
            required=["b"],
            properties={"b": {"type": "integer", "description": "A member.", "default": 1}},
        ),
    ),
    "odd_pattern": Broken(CheckCode.BAD_PATTERN, ("schema.json", f"{A}/pattern"), argument(pattern="(")),
    "old_draft": Broken(
        CheckCode.OTHER_DRAFT,
        ("schema.json", "/parameters/$schema"),
        schema(**parameters({}, **{"$schema": "http://json-schema.org/draft-07/schema#"})),
    ),
    "silent": Broken(CheckCode.UNDESCRIBED, ("schema.json", A), argument(description="")),
    "silent_member": Broken(
        CheckCode.UNDESCRIBED,
        ("schema.json", f"{A}/properties/length"),
        argument(type="object", additionalProperties=False, properties={"length": {"type": "integer"}}),
    ),
    "silent_item": Broken(
        CheckCode.UNDESCRIBED,
        ("schema.json", f"{A}/items/properties/name"),
        argument(
            type="array",
            items={
                "type": "object",
                "additionalProperties": False,
                "properties": {"name": {"type": "string"}},
            },
        ),
    ),
    "shapeless": Broken(
        CheckCode.UNTYPED, ("schema.json", A), schema(**parameters({"a": {"description": "Whatever."}}))
    ),
    "typing_mistake": Broken(
        CheckCode.UNKNOWN_KEYWORD, ("schema.json", f"{A}/maxLenght"), argument(maxLenght=5)
    ),
    # guide
    "wordless": Broken(
        CheckCode.NO_SUMMARY, ("guide.md", ""), guide("# echo\n\n- a list\n\n```json\n{}\n```\n")
    ),
    "wordy": Broken(
        CheckCode.LONG_SUMMARY, ("guide.md", ""), guide(f"# echo\n\n{'word ' * 60}\n\n```json\n{{}}\n```\n")
    ),
    "example_cut": Broken(
        CheckCode.BAD_EXAMPLE_JSON, ("guide.md", "line 11, column 8"), example('{\n"text": ')
    ),
    "example_twice": Broken(
        CheckCode.BAD_EXAMPLE_JSON, ("guide.md", "line 10"), example('{"text": "a", "text": "b"}')
    ),
    "example_wrong": Broken(CheckCode.INVALID_EXAMPLE, ("guide.md", "line 10"), example('{"volume": 11}')),
    "no_example": Broken(CheckCode.NO_EXAMPLE, ("guide.md", ""), guide("# echo\n\nSays a text again.\n")),
    "result_wrong": Broken(
        CheckCode.INVALID_RESULT,
        ("guide.md", "line 10"),
        {**example("[]", "json result"), **schema(returns={"type": "object"})},
    ),
    "repeated": Broken(
        CheckCode.REPEATED_SCHEMA,
        ("guide.md", ""),
        guide("# echo\n\nSays a text again.\n\n- `text`: what to say.\n\n```json\n{}\n```\n"),
    ),
    # handler
    "not_python": Broken(
        CheckCode.BAD_SYNTAX, ("handler.py", "line 1"), {"handler": "async def execute(args, ctx)\n"}
    ),
    "null_byte": Broken(CheckCode.BAD_SYNTAX, ("handler.py", "line 1"), {"handler": "a = '\0'\n"}),
    "no_execute": Broken(CheckCode.NO_EXECUTE, ("handler.py", ""), {"handler": "def run(args, ctx): ...\n"}),
    "execute_is_data": Broken(CheckCode.NO_EXECUTE, ("handler.py", ""), {"handler": "execute = 5\n"}),
    "one_argument": Broken(
        CheckCode.BAD_SIGNATURE, ("handler.py", "line 1"), {"handler": "def execute(args): ...\n"}
    ),
    "demanding": Broken(
        CheckCode.BAD_SIGNATURE,
        ("handler.py", "line 1"),
        {"handler": "def execute(args, ctx, *, key): ...\n"},
    ),
    "generator": Broken(
        CheckCode.BAD_SIGNATURE,
        ("handler.py", "line 1"),
        {"handler": "def execute(args, ctx):\n    yield 1\n"},
    ),
    "no_answer": Broken(
        CheckCode.NO_ANSWER,
        ("handler.py", "line 2"),
        {
            "handler": "import jackfield as jf\nasync def execute(args, ctx):\n"
            "    yield jf.partial(1)\n    yield\n    def inner():\n        yield 2\n"
        },
    ),
    "wrapped_away": Broken(
        CheckCode.BAD_SIGNATURE, ("handler.py", ""), {"handler": "execute = lambda only: None\n"}
    ),
    "raises": Broken(
        CheckCode.IMPORT_RAISES, ("handler.py", "line 2"), {"handler": "def execute(a, c): ...\n1 / 0\n"}
    ),
    "leaves": Broken(
        CheckCode.IMPORT_RAISES,
        ("handler.py", "line 2"),
        {"handler": "def execute(a, c): ...\nraise SystemExit\n"},
    ),
    "kills": Broken(
        CheckCode.IMPORT_DIES,
        ("handler.py", ""),
        {"handler": "import os\ndef execute(a, c): ...\nos._exit(3)\n"},
    ),
    # types and capabilities
    "disagrees": Broken(
        CheckCode.TYPES_DISAGREE,
        ("schema.json", "/parameters/properties/text/type"),
        {
            "handler": "from dataclasses import dataclass\n@dataclass\nclass Say:\n    text: int = 1\n"
            "async def execute(args: Say, ctx): ...\n",
            "schema": parameters({"text": {"type": "number", "description": "What.", "default": 1}}),
        },
    ),
    "no_schema_in_type": Broken(
        CheckCode.BAD_TYPES, ("handler.py", ""), {"handler": "async def execute(args: list[int], ctx): ...\n"}
    ),
    "absent_type": Broken(
        CheckCode.UNRESOLVED_TYPES,
        ("handler.py", ""),
        {"handler": "from __future__ import annotations\nasync def execute(args: Absent, ctx): ...\n"},
    ),
    "undeclared": Broken(
        CheckCode.UNDECLARED_CAPABILITY,
        ("handler.py", "line 2"),
        {"handler": "async def execute(args, context):\n    return context.session.id, context.diary\n"},
    ),
}


def placed(findings: list[dict[str, Any]]) -> dict[str, list[tuple[str, str, str]]]:
    """Return code, file and path of each finding by tool."""
    by_tool: dict[str, list[tuple[str, str, str]]] = {}
    for finding in findings:
        place = (finding["code"], finding["file"] or "", finding["path"] or "")
        by_tool.setdefault(finding["subject"], []).append(place)
    return by_tool


def expected(broken: Broken) -> tuple[str, str, str]:
    return (broken.code.id, *broken.place)


def test_each_broken_package_reports_its_code_in_one_run(project: Callable[..., Path], site: Any) -> None:
    site.enforcer()
    for tool_id, broken in BROKEN.items():
        folder = project(tool_id, guide=broken.files.get("guide", EXAMPLE), **_without_guide(broken.files))
    report = site.run_json("validate", str(folder.parent))

    found = placed(report["findings"])
    assert {tool_id: found.get(tool_id) for tool_id in BROKEN} == {
        tool_id: [expected(broken)] for tool_id, broken in BROKEN.items()
    }
    assert report["ok"] is False


EXAMPLE = "# echo\n\nSays a text again.\n\n```json\n{}\n```\n"


def _without_guide(files: dict[str, Any]) -> dict[str, Any]:
    given = {name: content for name, content in files.items() if name != "guide"}
    fields = given.get("schema", {})
    if isinstance(fields, dict) and "parameters" not in fields:
        given["schema"] = {**parameters({}), **fields}
    return given


def test_installed_packages_report_the_same_and_nothing_is_written(site: Any, tmp_path: Path) -> None:
    site.enforcer()
    for tool_id, broken in BROKEN.items():
        site.tool(tool_id, guide=broken.files.get("guide", EXAMPLE), **_without_guide(broken.files))
    site.tool("sound")
    (site.folder.parent / "tool_registry.json").write_text("kept")

    report = site.run_json("build")

    found = placed(report["findings"])
    assert {tool_id: found.get(tool_id) for tool_id in BROKEN} == {
        tool_id: [expected(broken)] for tool_id, broken in BROKEN.items()
    }
    assert "sound" not in found
    assert report["version"] is None
    assert (site.folder.parent / "tool_registry.json").read_text() == "kept"


def test_unreadable_and_missing_files_have_different_codes(site: Any) -> None:
    folder = site.tool("echo", guide=None)
    (folder / "guide.md").mkdir()
    findings = placed(site.run_json("build")["findings"])
    assert findings["echo"] == [(CheckCode.UNREADABLE.id, "guide.md", "")]


@pytest.mark.parametrize(
    "fields",
    [
        {"requiresConfirmation": True, "preview": "Say {text}?"},
        {"allowedModes": ["text"]},
        {"rateLimit": {"calls": 1, "windowMs": 1000}},
        {"availability": {"user": {"authenticated": True}}},
    ],
)
def test_a_tool_with_an_unenforced_restriction_is_withheld(site: Any, fields: dict[str, Any]) -> None:
    site.tool("echo", schema=fields)
    (finding,) = site.run_json("build")["findings"]
    assert finding["code"] == CheckCode.UNENFORCED.id
    assert finding["path"] == f"/{next(iter(fields))}"
    withheld = site.run_json("tools")["tools"][0]["withheld"]
    assert withheld == f"no plugin provides a policy that enforces {next(iter(fields))}"
    refused = site.run("call", "echo", '{"text": "x"}')
    assert "withheld: it needs a policy that enforces" in refused.stderr

    site.enforcer()
    assert site.run_json("build")["findings"] == []
    assert site.run_json("tools")["tools"][0]["withheld"] is None


def test_a_pipe_instead_of_a_file_does_not_block_the_build(site: Any) -> None:
    import os

    folder = site.tool("echo", guide=None)
    os.mkfifo(folder / "guide.md")
    findings = placed(site.run_json("build")["findings"])
    assert findings["echo"] == [(CheckCode.UNREADABLE.id, "guide.md", "")]


def test_a_handler_that_hangs_at_import_is_stopped(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from jackfield_builder import handler_probe

    site.tool("slow", handler="import time\ndef execute(a, c): ...\ntime.sleep(60)\n")
    site.tool("quick")
    monkeypatch.setattr(handler_probe, "SECONDS_PER_MODULE", 1)
    requests = [handler_probe.ImportRequest(f"fab_{name}.handler:execute") for name in ("slow", "quick")]
    slow, quick = handler_probe.probe_imports(requests).values()
    assert slow == handler_probe.ImportResult("died", "it took longer than 1 s")
    assert quick.kind == "imported"


def test_output_of_a_handler_at_import_does_not_disturb_the_probe(site: Any) -> None:
    site.tool("loud", handler="print('{\"module\": 1}')\ndef execute(a, c): ...\n")
    assert site.run_json("build")["tools"] == {"loud": "1.0.0"}


def test_no_import_runs_no_code_of_a_tool(site: Any, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    site.tool("echo", handler=f"open({str(trace)!r}, 'w')\ndef execute(a, c): ...\n")
    assert site.run_json("build", "--no-import")["tools"] == {"echo": "1.0.0"}
    assert not trace.exists()


@pytest.mark.parametrize(
    "handler",
    [
        "def execute(args, ctx): ...\n",
        "async def execute(args, ctx):\n    yield partial(1)\n    yield 2\n",
        "async def execute(args, ctx, extra=None): ...\n",
        "async def execute(*both): ...\n",
        "class _Tool:\n    async def __call__(self, args, ctx): ...\nexecute = _Tool()\n",
        "import functools\ndef _run(first, args, ctx): ...\nexecute = functools.partial(_run, 1)\n",
        "try:\n    from fab_gone import execute\nexcept ImportError:\n    def execute(args, ctx): ...\n",
    ],
)
def test_every_way_to_define_execute_is_accepted(site: Any, handler: str) -> None:
    site.tool("echo", handler=handler)
    assert site.run_json("build")["findings"] == []


@pytest.mark.parametrize(
    "keywords",
    [
        {"oneOf": [{"required": ["text"]}, {"required": ["a"]}]},
        {"if": {"properties": {"text": {"const": "x"}}}, "then": {"required": ["a"]}},
        {"allOf": [{"properties": {"a": {"minLength": 2}}}]},
    ],
)
def test_branches_of_a_closed_object_need_not_be_closed(site: Any, keywords: dict[str, Any]) -> None:
    fields = parameters({"a": {"type": "string", "description": "An argument."}}, **keywords)
    site.tool("echo", schema=fields)
    assert site.run_json("build")["findings"] == []


def test_a_recursive_schema_through_properties_is_accepted(site: Any) -> None:
    node = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "description": "What it is called."},
            "children": {
                "type": "array",
                "description": "What it holds.",
                "items": {"$ref": "#/$defs/node"},
            },
        },
    }
    fields = parameters({"tree": {"$ref": "#/$defs/node"}}, **{"$defs": {"node": node}})
    tree = {"text": "x", "tree": {"name": "a", "children": [{"name": "b"}]}}
    site.tool("echo", schema=fields, guide=f"# echo\n\nSays it.\n\n```json\n{json.dumps(tree)}\n```\n")
    assert site.run_json("build")["findings"] == []


def test_a_chain_of_thousands_of_references_is_checked(site: Any) -> None:
    links = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(7000)}
    fields = parameters({"a": {"$ref": "#/$defs/d0"}}, **{"$defs": {**links, "d7000": {"type": "string"}}})
    site.tool("echo", schema=fields)
    done = site.run("build", "--json")
    assert done.returncode in {0, 1}
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)


def test_all_errors_of_a_tool_are_reported_in_one_run(site: Any) -> None:
    site.tool(
        "echo",
        schema={"version": "one", "category": "x", "sideEffects": "writes", "idempotent": ...},
        guide="# echo\n",
        handler="",
    )
    codes = {code for code, _, _ in placed(site.run_json("build")["findings"])["echo"]}
    assert codes == {
        code.id
        for code in (
            CheckCode.NOT_SEMVER,
            CheckCode.FIELD_VALUE,
            CheckCode.FIELD_MISSING,
            CheckCode.NO_SUMMARY,
            CheckCode.NO_EXAMPLE,
            CheckCode.NO_EXECUTE,
        )
    }


CLOCK = """from jackfield import hookimpl
from jackfield.offers import CapabilityOffer


@hookimpl
def jackfield_capabilities():
    return [CapabilityOffer("calendar", dict)]
"""


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (argument(type="int"), "'int' is not a type; did you mean 'integer'?"),
        (argument(type="float"), "'float' is not a type; the types are array, boolean, integer, null"),
        (schema(requires=["calender"]), "'calender'; did you mean 'calendar'?"),
        ({"handler": "def execute(args, *, ctx): ...\n"}, "execute takes args, *, ctx"),
        (
            guide('# echo\n\n## Examples\n\nSay hello.\n\n```json\n{"text": "hello"}\n```\n'),
            "no paragraph outside headings, lists and code",
        ),
    ],
    ids=["short type", "foreign type", "capability", "keyword", "summary"],
)
def test_a_finding_suggests_the_correct_name(site: Any, files: dict[str, Any], message: str) -> None:
    site.plugin("fab-clock", CLOCK)
    site.tool("echo", **files)
    assert message in site.run("build").stderr


def test_the_summary_may_be_in_a_section_or_before_an_example(site: Any) -> None:
    block = '```json\n{"text": "hello"}\n```\n'
    site.tool("plain", guide=f"# plain\n\nSays it.\n\n{block}")
    site.tool("titled", guide=f"# titled\n\n## Purpose\n\nSays it.\n\n## Examples\n\nSay hello.\n\n{block}")
    assert site.run("build").returncode == 0
    assert [tool["summary"] for tool in site.run_json("tools")["tools"]] == ["Says it.", "Says it."]


def test_the_hint_for_a_broken_pyproject_says_to_fix_it(project: Callable[..., Path], site: Any) -> None:
    folder = project("echo", pyproject="[project\n")
    message = site.run("validate", str(folder)).stderr
    assert "-> fix pyproject.toml at that place" in message
    file = site.run("validate", str(folder / "pyproject.toml")).stderr
    assert "pyproject.toml: this is a file; name the folder of its project" in file


def test_two_projects_that_claim_one_id_are_both_named(project: Callable[..., Path], site: Any) -> None:
    first = project("echo")
    second = first.with_name("echo-again")
    first.rename(second)
    project("echo")
    findings = site.run_json("validate", str(second.parent))["findings"]
    codes = {finding["code"]: finding["message"] for finding in findings}
    assert str(second) in codes[CheckCode.TOOL_ID_TAKEN.id]


TYPED = """from dataclasses import dataclass
from typing import Annotated
from jackfield import ok


@dataclass
class Words:
    text: Annotated[str, "What to say."]


async def execute(args: Words, ctx):
    return ok({})
"""


@pytest.mark.parametrize(
    ("handler", "code", "hint"),
    [
        (TYPED.replace("ok({})", "ok({"), CheckCode.BAD_SYNTAX, "fix the syntax"),
        (
            TYPED.replace("async def", "def").replace("return ok", "await ok"),
            CheckCode.BAD_SYNTAX,
            "fix the syntax",
        ),
        (TYPED.replace("import ok", "import okay"), CheckCode.IMPORT_RAISES, "fix the error"),
        (TYPED.replace("(args: Words, ctx)", "(args: Words)"), CheckCode.BAD_SIGNATURE, "define it as"),
        (f"import fab_gone\n{TYPED}", CheckCode.IMPORT_RAISES, "install the missing module; if it is not in"),
        (f"import words\n{TYPED}", CheckCode.IMPORT_RAISES, "import it as `fab_echo.words`"),
    ],
    ids=["bracket", "await", "import", "signature", "missing module", "own module"],
)
def test_a_handler_whose_types_cannot_be_read_is_the_only_finding(
    site: Any, handler: str, code: CheckCode, hint: str
) -> None:
    folder = site.tool(
        "echo", schema={"parameters": ...}, guide=example('{"text": "x"}')["guide"], handler=handler
    )
    (folder / "words.py").write_text("X = 1\n")
    (finding,) = site.run_json("build")["findings"]
    assert finding["code"] == code.id
    assert hint in finding["hint"]


def test_types_that_were_not_read_are_reported_next_to_other_errors(site: Any) -> None:
    site.tool(
        "echo",
        schema={"parameters": ..., "category": "magic"},
        guide=example('{"text": "x"}')["guide"],
        handler=TYPED,
    )
    codes = {finding["code"] for finding in site.run_json("build", "--no-import")["findings"]}
    assert codes == {CheckCode.FIELD_VALUE.id, CheckCode.TYPES_UNREAD.id}


@pytest.mark.parametrize(
    ("file", "text", "finding"),
    [
        (
            "schema",
            '{\n  // the contract\n  "category": "utility"}',
            (CheckCode.BAD_JSON, "remove the comment; JSON has none"),
        ),
        ("schema", "{'category': 'utility'}", (CheckCode.BAD_JSON, "write strings in double quotes")),
        (
            "schema",
            {"parameters": {"text": {"type": "string"}}},
            (CheckCode.UNKNOWN_KEYWORD, "move it under `properties`"),
        ),
        ("schema", {"category": ...}, (CheckCode.FIELD_MISSING, 'add it with the value "retrieval" or')),
        (
            "schema",
            {"category": "action", "sideEffects": "writes", "idempotent": ..., "requiresConfirmation": False},
            (CheckCode.FIELD_MISSING, "add it with the value true or false"),
        ),
        ("schema", {"rateLimit": {"calls": 5}}, (CheckCode.FIELD_MISSING, "add it with a whole number")),
        (
            "schema",
            {"rateLimit": "5/min"},
            (CheckCode.FIELD_TYPE, 'write an object with "calls" and "windowMs"'),
        ),
        ("schema", {"requires": "kb"}, (CheckCode.FIELD_TYPE, 'write a list: ["kb"]')),
        ("schema", {"idempotent": "yes"}, (CheckCode.FIELD_TYPE, "write true or false, without quotes")),
        (
            "schema",
            argument(required=True)["schema"],
            (CheckCode.BAD_SCHEMA, "list the names of the required"),
        ),
        (
            "schema",
            {"family": "echo", "tools": {}},
            (CheckCode.FIELD_UNKNOWN, 'declare the package in [project.entry-points."jackfield.families"]'),
        ),
        (
            "handler",
            "async def execute(args, ctx): return ctx.agentz.all()\n",
            (CheckCode.UNDECLARED_CAPABILITY, "write the same name in the handler and in `requires`"),
        ),
        (
            "handler",
            "async def execute(args, ctx): return ctx.sesion.user\n",
            (CheckCode.UNDECLARED_CAPABILITY, "correct the name, or add 'sesion'"),
        ),
    ],
    ids=[
        "comment",
        "quotes",
        "no properties",
        "category",
        "idempotent",
        "window",
        "rate limit",
        "list",
        "flag",
        "required",
        "family",
        "capability",
        "context",
    ],
)
def test_the_hint_fits_the_mistake(site: Any, file: str, text: Any, finding: tuple[CheckCode, str]) -> None:
    files = {"schema": {"requires": ["agents"]}, file: text}
    site.tool("echo", **files)
    hints = [each["hint"] for each in site.run_json("build")["findings"] if each["code"] == finding[0].id]
    assert [hint for hint in hints if finding[1] in hint] == hints[:1]


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("[]", "it is an array"),
        ('"x"', "it is a string"),
        ("3", "it is a number"),
        ("0.5", "it is a number"),
        ("true", "it is a boolean"),
        ("null", "it is null"),
    ],
)
def test_a_document_that_is_not_an_object_is_described_in_json_terms(text: str, described: str) -> None:
    assert parse_object(text) == [FileProblem(CheckCode.NOT_AN_OBJECT, described, "schema.json", "/")]


def test_the_lines_of_a_file_are_reported_in_order(site: Any) -> None:
    block = '```json\n{"text": 1}\n```\n\n'
    site.tool("echo", guide=f"# echo\n\nSays it.\n\n{block * 3}")
    paths = [each["path"] for each in site.run_json("build")["findings"]]
    assert paths == ["line 6", "line 10", "line 14"]


def test_an_exception_whose_str_fails_is_still_reported(site: Any) -> None:
    shy = (
        "class Shy(Exception):\n    def __str__(self): raise ValueError\ndef execute(a, c): ...\nraise Shy\n"
    )
    site.tool("echo", handler=shy)
    (finding,) = site.run_json("build")["findings"]
    assert finding["code"] == CheckCode.IMPORT_RAISES.id
    assert finding["message"] == "Shy: (no message: str() of the exception fails)"


def test_a_misspelt_format_gets_a_suggestion(site: Any) -> None:
    site.tool("echo", schema=parameters({"a": {"type": "string", "description": "x", "format": "datetime"}}))
    (finding,) = site.run_json("build")["findings"]
    assert finding["message"] == "'datetime'; did you mean 'date-time'?"


def test_a_misspelt_argument_of_an_example_gets_a_suggestion(site: Any) -> None:
    length = {"type": "integer", "description": "In months."}
    inner = {"type": "object", "additionalProperties": False, "properties": {"length": length}}
    fields = parameters({"term": {"$ref": "#/$defs/term"}}, **{"$defs": {"term": inner}})
    site.tool("echo", schema=fields, guide=example('{"txet": "x", "term": {"lenght": 3}}')["guide"])
    messages = [finding["message"] for finding in site.run_json("build")["findings"]]
    assert messages == [
        "/term: Additional properties are not allowed ('lenght' was unexpected); did you mean 'length'?",
        "Additional properties are not allowed ('txet' was unexpected); did you mean 'text'?",
    ]


def test_the_text_output_says_what_where_and_how_to_fix_it(site: Any) -> None:
    site.tool("echo", schema={"category": "magic"})
    done = site.run("build")
    assert done.returncode == 1
    for part in ("fab-echo 1.0.0 · echo", "JF304", "schema.json /category", '"retrieval"', "-> choose one"):
        assert part in done.stderr
    assert "\x1b[" not in done.stderr
    assert "1 error, 0 warnings" in done.stderr


def lines_about_volume(*lines: str) -> dict[str, Any]:
    volume = {
        "type": "integer",
        "description": "How loud to say it.",
        "minimum": 1,
        "maximum": 11,
        "default": 5,
    }
    about = "\n".join(lines)
    return {
        "schema": parameters({"volume": volume}),
        "guide": f"# echo\n\nSays a text again.\n\n{about}\n\n```json\n{{}}\n```\n",
    }


@pytest.mark.parametrize(
    ("lines", "noted"),
    [
        (("- `volume`: how loud to say it, 1 to 11, default 5.",), True),
        (("- `volume`: in a meeting stay below 3, and ask before you shout.",), False),
        (
            (
                "- `volume`: how loud.",
                "- `text`: only words that the user dictated, without quotation marks.",
            ),
            False,
        ),
        (("- `volume`: how loud to say it.", "- `text`: never a secret."), True),
        (("- how loud to say it",), False),
    ],
)
def test_a_guide_that_mostly_repeats_the_schema_gets_a_note(
    lines: tuple[str, ...], noted: bool, site: Any
) -> None:
    site.tool("echo", **lines_about_volume(*lines))
    findings = [each for each in site.run_json("build")["findings"] if each["code"] == "JF607"]
    assert bool(findings) is noted
    assert all(each["severity"] == "note" for each in findings)


SHARED = {
    "handler.py": """
from fab_shop import orders as desk
from fab_shop.orders import find as search
from .orders import guarded, unused

async def execute(args, ctx):
    context = ctx
    def inner(ctx):
        return ctx.hidden
    await context.progress("a")
    search(ctx=ctx)
    guarded(ctx)
    return desk.place(args, context)
""",
    "orders.py": """
def find(*, ctx):
    return ctx.catalogue

def place(args, who):
    return [who.ledger for _ in args]

def guarded(ctx):
    if hasattr(ctx, "printer"):
        return ctx.printer
    try:
        return ctx.scanner
    except AttributeError:
        return None

def unused(ctx):
    return ctx.never
""",
}


def test_a_capability_is_found_in_the_functions_that_get_the_context(site: Any) -> None:
    folder = site.tool("shop")
    for name, source in SHARED.items():
        (folder / name).write_text(source)
    found = {
        (finding["message"].split()[2], finding["file"], finding["path"])
        for finding in site.run_json("build")["findings"]
        if finding["code"] == CheckCode.UNDECLARED_CAPABILITY.id
    }
    assert found == {("ctx.catalogue,", "orders.py", "line 3"), ("ctx.ledger,", "orders.py", "line 6")}


DECLARED = """from dataclasses import dataclass
from jackfield import hookimpl
from jackfield.offers import CapabilityOffer


@dataclass(frozen=True, slots=True)
class DiarySettings:
    path: str


@hookimpl
def jackfield_capabilities():
    return [CapabilityOffer("diary", lambda settings, services: object(), settings=DiarySettings)]
"""


def test_the_build_warns_of_missing_settings_of_a_required_capability(site: Any) -> None:
    site.plugin("fab-diary", DECLARED)
    site.tool("plain")
    site.tool("reader", schema={"requires": ["diary"]})
    (finding,) = site.run_json("build")["findings"]
    assert (finding["code"], finding["severity"], finding["subject"]) == ("JF409", "warning", "reader")
    assert finding["message"].startswith("[capabilities.diary] path: missing; expected")
    (site.folder.parent / "jackfield.toml").write_text('[capabilities.diary]\npath = "diary.txt"\n')
    assert site.run_json("build")["findings"] == []
