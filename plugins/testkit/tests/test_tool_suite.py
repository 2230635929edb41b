"""The tool suite: good tools pass, and a tool with one fault fails the contract test for that fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from jackfield_testkit import ToolContractTests
from jackfield_testkit.site_packages import SCHEMA as ECHO
from jackfield_testkit.site_packages import SitePackages
from jackfield_testkit.suite import contract_tests

pytest_plugins = ("pytester",)

_MANNER = {
    "type": "object",
    "description": "How to say it.",
    "additionalProperties": False,
    "properties": {"loud": {"type": "boolean", "default": False}},
}
_TIMES = {"type": "integer", "description": "How often.", "minimum": 1, "default": 2}
SCHEMA: dict[str, Any] = {
    "latencyBudgetMs": 2000,
    "parameters": {
        **ECHO["parameters"],
        "properties": {**ECHO["parameters"]["properties"], "times": _TIMES, "manner": _MANNER},
    },
}
GUIDE = '# echo\n\nSays a text again.\n\n```json\n{"text": "hello"}\n```\n'
HANDLER = """
async def execute(args, ctx):
    if args["text"] == "refuse":
        return fail(ErrorType.PERMANENT, "No.", suggestion="Ask for something else.")
    await asyncio.sleep(0)
    ctx.audit("said", times=args["times"])
    said = args["text"] * args["times"]
    return ok({"said": said.upper() if args.get("manner", {}).get("loud", False) else said})
"""
IMPORTS = """
import asyncio, datetime, time
from typing import NamedTuple
from jackfield import *

class Pair(NamedTuple):
    x: int
"""
EXAMPLES = """(
    Example({"text": "ha"}, data={"said": "haha"}),
    Example({"text": "ha", "times": 2, "manner": {"loud": True}}, data=lambda data: data["said"].isupper()),
    Example({"text": "ha", "manner": {}}, name="softly"),
    Example({"text": "refuse"}, error="PERMANENT"),
    Example({"text": 5}, error="VALIDATION"),
)"""


TYPED = """
from dataclasses import dataclass
from typing import Annotated

@dataclass
class Say:
    text: Annotated[str, "What to say."]
    times: Annotated[int, "How often."] = 2

    def __post_init__(self):
        if self.text == "no":
            raise ValueError("it says no")

@dataclass
class Said:
    said: str

async def execute(args: Say, ctx) -> Said:
    return Said(args.text * args.times)
"""


def answering(expression: str, *, before: str = "await asyncio.sleep(0)") -> str:
    """Return the source of a handler with a fixed response."""
    return f"async def execute(args, ctx):\n    {before}\n    return {expression}\n"


def waiting(then: str, *, caught: str = "asyncio.CancelledError") -> str:
    """Return source that waits long enough to be cancelled, and reacts to that."""
    return f"try: await asyncio.sleep(0.08)\n    except {caught}: {then}"


@dataclass(frozen=True)
class Tool:
    """A tool, its test class, and the contract tests that are expected to fail or to be skipped."""

    name: str
    fails: str = ""
    handler: str = HANDLER
    schema: dict[str, Any] = field(default_factory=dict)
    guide: str = GUIDE
    examples: str = "(Example({'text': 'ha'}),)"
    body: str = ""
    says: str = ""
    skips: str = ""


WRITES = {"sideEffects": "writes", "idempotent": False, "category": "action"}
TEXT_ONLY = {"allowedModes": ["text"]}
CLOSED = SCHEMA["parameters"]
ANY_EXTRA = {**CLOSED, "properties": {**CLOSED["properties"], "extra": {"description": "Any."}}}
VOICE = "(Example({'text': 'ha'}, mode='voice'),)"
HA_AND_NO = "(Example({'text': 'ha'}), Example({'text': 'refuse'}, error='CONFLICT'))"

TOOLS = [
    Tool("good", examples=EXAMPLES),
    Tool("good_and_plain", examples=EXAMPLES,
         handler=HANDLER.replace("async ", "").replace("await asyncio", "time")),
    Tool("good_without_ok", handler=answering("{'said': 'haha'}"),
         examples="(Example({'text': 'ha'}, data={'said': 'haha'}),)"),
    Tool("good_and_typed", schema={"parameters": ...}, handler=TYPED,
         examples="(Example({'text': 'ha'}, data={'said': 'haha'}), Example({'text': 5}, error='VALIDATION'),"
         " Example({'text': 'no'}, error='VALIDATION'))"),
    Tool("good_but_slow_in_a_thread", examples=VOICE,
         handler="def execute(args, ctx):\n    time.sleep(0.08)\n    return ok()\n"),
    Tool("good_in_text_only", schema=TEXT_ONLY, handler=answering("ok('<b>' * 900)"),
         skips="speakable_in_voice"),
    Tool("good_but_writes", schema=WRITES, skips="defaults"),
    Tool("good_at_random", handler=answering("ok(time.time_ns())")),
    Tool("good_with_context", schema={"requires": ["kb"]},
         handler=answering("ok([*ctx.kb, ctx.session.mode])"),
         examples="(Example({'text': 'ha'}, mode='voice', data=['a', 'voice']),)",
         body="def context(self, mode): return ToolTestContext(mode, kb=('a',))"),
    Tool("good_but_waived", handler=answering("ok()", before="time.sleep(0.3)"), examples=VOICE,
         body="waived = {'test_no_blocking': 'it has to', 'test_contract': 'a trial'}",
         skips="no_blocking contract", says="waives test_no_blocking: it has to"),

    Tool("summary_too_long", "contract", guide="# x\n\n" + "long " * 60, says="JF602 the summary"),
    Tool("example_of_guide_is_wrong", "contract", guide=GUIDE + '```json\n{"txt": 1}\n```\n',
         says="guide.md line 9: Additional properties"),

    Tool("other_data", "examples", examples="(Example({'text': 'ha'}, data={'said': 'ha'}),)",
         says='+  "said": "haha"'),
    Tool("true_for_one", "examples", handler=answering("ok(True)"),
         examples="(Example({'text': 'ha'}, data=1),)"),
    Tool("not_as_predicted", "examples", examples="(Example({'text': 'ha'}, data=lambda data: 'x' in data),)",
         says='data= returned False for {"said": "haha"}'),
    Tool("fails_unexpectedly", "examples", examples="(Example({'text': 'ha'}), Example({'text': 'refuse'}))",
         says="expected success, got PERMANENT: No."),
    Tool("succeeds_unexpectedly", "examples", examples=HA_AND_NO, handler=answering("ok(1)"),
         says="expected a failure of type CONFLICT, got ok(1)"),
    Tool("fails_otherwise", "examples", examples=HA_AND_NO,
         says="expected a failure of type CONFLICT, got PERMANENT"),
    Tool("crashes", "examples", handler=answering("1 / 0"), says="ZeroDivisionError: division by zero"),
    Tool("breaks_its_promise", "examples", schema={"returns": {"type": "array"}}, says="breaks `returns`"),
    Tool("refuses_its_example", "examples", examples="(Example({'text': 'ha'}), Example({'text': 7}))",
         says="got VALIDATION: /text"),
    Tool("accepts_too_much", "examples", says="the schema accepts these arguments",
         examples="(Example({'text': 'ha'}), Example({'text': 'ha'}, error='VALIDATION'))"),
    Tool("not_for_voice", "examples", schema=TEXT_ONLY, examples=VOICE, skips="speakable_in_voice",
         says="the tool is not allowed in voice"),
    Tool("without_its_capability", "examples", schema={"requires": ["kb"]}, handler=answering("ok(ctx.kb)"),
         says="ToolTestContext(mode, kb=...)"),
    Tool("undeclared_capability", "contract examples", handler=answering("ok(ctx.kb)"),
         body="def context(self, mode): return ToolTestContext(mode, kb=1)", says="uses ctx.kb"),

    Tool("returns_nothing", "examples envelope", handler=answering("None"), says="returned None"),
    Tool("failure_of_another_layer", "examples envelope", says="a handler must not return INTERNAL",
         handler=answering("fail(ErrorType.INTERNAL, 'Oh.')")),
    Tool("raises_failure_of_another_layer", "examples envelope", says="expected success, got NOT_FOUND",
         handler=answering("1", before="raise ToolError(ErrorType.NOT_FOUND, 'No such thing.')")),
    Tool("returns_nan", "envelope", handler=answering("ok({'a': [float('nan')]})"),
         says="data /a/0: nan is not a finite number"),
    Tool("returns_named_tuple", "envelope", handler=answering("ok(Pair(1))"), says="is a Pair"),
    Tool("changes_its_arguments", "envelope", handler=answering("ok(args.pop('text'))"),
         says="changed its arguments"),
    Tool("malformed_intent", "envelope", says="after is 'now', not one of 'current_turn', 'farewell_spoken'",
         handler=answering("ok(1, Intent('END_VOICE_SESSION', {'after': 'now'}))")),
    Tool("malformed_failure", "envelope", says="use ErrorType",
         examples="(Example({'text': 'ha'}), Example({'text': 'no'}, error='PERMANENT'))",
         handler=answering(
             "ok() if args['text'] == 'ha' else ToolResponse(failure=Failure('PERMANENT', 'No.'))"
         )),

    Tool("other_default", "defaults", handler=answering("ok(args['text'] * args.get('times', 3))"),
         says="/times has the default 2"),
    Tool("other_nested_default", "defaults", examples="(Example({'text': 'ha', 'manner': {}}),)",
         handler=answering("ok(args['manner'].get('loud', True))"),
         says="/manner/loud has the default False"),

    Tool("open_by_pattern", "unknown_arguments", says="/no_tool_has_this_argument is accepted",
         schema={"parameters": {**CLOSED, "patternProperties": {"^": {}}}}),
    Tool("open_inside", "unknown_arguments", schema={"parameters": ANY_EXTRA},
         examples="(Example({'text': 'ha', 'extra': [{'a': 1}]}),)",
         says="/extra/0/no_tool_has_this_argument is accepted"),

    Tool("over_its_budget", "time_budget", schema={"latencyBudgetMs": 10}, says="latencyBudgetMs is 10",
         handler=answering("ok()", before="await asyncio.sleep(0.03)"), examples=VOICE),

    Tool("swallows_cancellation", "cancellation", examples=VOICE, says="the cancellation was swallowed",
         handler=answering("ok()", before=waiting("pass", caught="BaseException"))),
    Tool("swallows_late", "cancellation", examples=VOICE, says="the cancellation was swallowed",
         handler=answering("ok()", before="await asyncio.sleep(0.01)\n    " + waiting("pass"))),
    Tool("outlives_cancellation", "cancellation", examples=VOICE, body="cancel_grace_ms = 50",
         handler=answering("ok()", before=waiting("await asyncio.sleep(60); raise")),
         says="still ran 50 ms later"),

    Tool("sleeps_on_the_loop", "no_blocking", examples=VOICE, body="max_block_ms = 20",
         handler=answering("ok()", before="time.sleep(0.3)"),
         says="ms, waiting at handler.py:10 in execute: time.sleep(0.3)"),
    Tool("computes_on_the_loop", "no_blocking", examples=VOICE, body="max_block_ms = 20",
         handler=answering("ok()", before="begun = time.thread_time()\n    "
                           "while time.thread_time() - begun < 0.1: pass"),
         says="ms, computing at handler.py:11 in execute: while"),
    Tool("keeps_the_interpreter", "no_blocking", examples=VOICE, body="max_block_ms = 20",
         handler=answering("ok()", before="await asyncio.to_thread(sum, range(10_000_000))"),
         says="ms, by a thread that blocked all others"),

    Tool("five_thousand_characters", "speakable_in_voice", handler=answering("ok('a' * 5000)"),
         says="5002 characters, but at most 1500"),
    Tool("tags", "speakable_in_voice", handler=answering("ok({'a': ['<b>now</b>']})"), examples=VOICE,
         says="data /a/0 contains a tag"),
    Tool("never_tried_in_voice", "speakable_in_voice", examples="(Example({'text': 'ha'}, mode='text'),)",
         says="no successful example runs there"),
]  # fmt: skip


def run(pytester: pytest.Pytester, tool: Tool) -> tuple[dict[str, set[str]], str]:
    """Run the contract tests of one tool; return their outcomes and all messages."""
    pytester.makeini("[pytest]\naddopts = --import-mode=importlib\nfilterwarnings = error\n")
    source = (
        "from jackfield_testkit import Example, ToolContractTests, ToolTestContext\n\n"
        f"class TestTool(ToolContractTests):\n    tool_id = {tool.name!r}\n"
        f"    examples = {tool.examples}\n    {tool.body or 'pass'}\n"
    )
    record = pytester.inline_run(pytester.makepyfile(source), "-p", "no:cacheprovider")
    outcomes: dict[str, set[str]] = {"passed": set(), "failed": set(), "skipped": set()}
    messages = ""
    for report in record.getreports("pytest_runtest_logreport"):
        if report.when == "call" or not report.passed:
            outcomes[report.outcome].add(report.nodeid.rpartition("::test_")[2].partition("[")[0])
            messages += f"{report.longrepr or ''}\n"
    return outcomes, messages


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_tool_fails_the_contract_test_for_its_fault(
    tool: Tool, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = SitePackages(pytester.path / "site")
    handler = f"{IMPORTS}\n{tool.handler}"
    site.tool(tool.name, schema={**SCHEMA, **tool.schema}, guide=tool.guide, handler=handler)
    monkeypatch.syspath_prepend(str(site.folder))
    outcomes, messages = run(pytester, tool)
    assert outcomes["failed"] == set(tool.fails.split()), messages
    assert outcomes["skipped"] == set(tool.skips.split())
    assert tool.says in messages
    every = {name.removeprefix("test_") for name in contract_tests(ToolContractTests)}
    assert set().union(*outcomes.values()) == every


def test_every_contract_test_has_a_tool_that_fails_it() -> None:
    failed = {f"test_{name}" for tool in TOOLS for name in tool.fails.split()}
    assert failed == set(contract_tests(ToolContractTests))
