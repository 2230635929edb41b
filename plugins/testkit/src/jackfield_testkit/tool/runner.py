"""Runs a tool as the registry does: finds it by its id, validates arguments, calls the handler."""

from __future__ import annotations

import asyncio
import copy
import importlib
import json
import math
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar, cast

import orjson
from jackfield import ErrorType, Mode, ToolContext, ToolError, ToolResponse, fail
from jackfield import plugins as plugin_loading
from jackfield.contract.manifest import ToolManifest, tool_schema
from jackfield.distributions import EntryPoint
from jackfield.invocation import DeadlineTimer, Handler, as_handler, run_handler
from jackfield.plugins import Plugins
from jackfield.registry.arguments import Arguments, compile_schema
from jackfield.registry.result_validator import ResultValidator
from jackfield_builder import pipeline
from jackfield_builder.checks import types
from jackfield_builder.discovery import Discovery, discover
from jackfield_builder.findings import Finding, sort_findings
from jackfield_builder.tool_draft import read_tool
from jackfield_builder.tool_sources import ToolSource, locate_tools
from jackfield_builder.type_schemas import handler_schemas

from jackfield_testkit.json_values import same_json
from jackfield_testkit.tool import report
from jackfield_testkit.tool.examples import Example

T = TypeVar("T")


class ToolUnusableError(Exception):
    """A tool that is not installed or cannot be run; the message says what to do."""


@dataclass(frozen=True, slots=True)
class InstalledTool:
    """A tool as the registry loads it."""

    source: ToolSource
    manifest: ToolManifest
    arguments: Arguments
    returns: ResultValidator | None
    handler: Handler

    @property
    def repeatable(self) -> bool:
        """True if running it twice has the same effect as running it once."""
        return self.manifest.idempotent or not self.manifest.writes

    def runs(self, wanted: int) -> int:
        """Return how many of the wanted runs are allowed."""
        return wanted if self.repeatable else 1


@cache
def load_tool(tool_id: str) -> InstalledTool:
    """Load an installed tool; raises `ToolUnusableError`."""
    source = _locate(tool_id, discover())
    draft = read_tool(source)
    broken = f"{tool_id} cannot be run; test_contract or `jackfield build` shows why"
    try:
        module, _, function = source.handler.partition(":")
        execute = getattr(importlib.import_module(module), function)
        draft.types = handler_schemas(execute)
        types.check(draft)
        if draft.schema is None or not compile_schema(tool_schema()).is_valid(draft.schema):
            raise ToolUnusableError(broken)
        manifest = ToolManifest.from_wire(draft.schema)
        arguments = Arguments(manifest.parameters)
        returns = None if manifest.returns is None else ResultValidator(manifest.returns)
        handler = as_handler(execute)
    except ToolUnusableError:
        raise
    except (Exception, SystemExit) as error:
        raise ToolUnusableError(f"{broken}: {type(error).__name__}: {error}") from error
    return InstalledTool(source, manifest, arguments, returns, handler)


def build_findings(tool_id: str) -> tuple[Finding, ...]:
    """Return all findings of the build about one tool, including the import of its handler."""
    discovery = discover()
    source = _locate(tool_id, discovery)
    (examined,) = pipeline.check_tools([source], plugins(discovery.plugins))
    return sort_findings([*_findings_about(source, discovery.findings), *examined.draft.findings])


def _locate(tool_id: str, discovery: Discovery) -> ToolSource:
    announced = [entry for entry in discovery.tools if entry.name == tool_id]
    # Plugins are imported only for a tool without an entry point of its own.
    offered = () if announced else plugins(discovery.plugins).of("jackfield_tools")
    found, unlocated = locate_tools(
        announced, (each for each in offered if each.name == tool_id), discovery.families
    )
    if found:
        return found[0]
    faults = [each for each in (*discovery.findings, *unlocated) if each.subject == tool_id]
    raise ToolUnusableError(_not_found(tool_id, faults, discovery))


def family_tools(family: str) -> tuple[str, ...]:
    """Return the ids of the tools of an installed family; raises `ToolUnusableError`."""
    discovery = discover()
    for each in discovery.families:
        if each.name == family:
            return each.tool_ids
    faults = [each for each in discovery.findings if each.subject == family]
    if faults:
        reasons = "; ".join(f"{each.code.id} {each.code.title}: {each.message}" for each in faults)
        raise ToolUnusableError(f"the family {family} cannot be used: {reasons}")
    close = get_close_matches(family, [each.name for each in discovery.families], 1)
    hint = f"did you mean {close[0]!r}? Otherwise install it" if close else "install it"
    raise ToolUnusableError(
        f"no installed distribution has an entry point {family!r} in the group jackfield.families; "
        f"{hint}, e.g. with `pip install -e .` in its folder, into the environment that runs pytest"
    )


@cache
def plugins(entries: tuple[EntryPoint, ...]) -> Plugins:
    """Load the plugins of these entry points with their offers; each is loaded once."""
    return plugin_loading.load(entries)


def _findings_about(source: ToolSource, found: Iterable[Finding]) -> Iterator[Finding]:
    for finding in found:
        owner = finding.distribution.name if finding.distribution else ""
        if finding.subject == source.tool_id or owner == source.distribution.name:
            yield finding


def _not_found(tool_id: str, faults: list[Finding], discovery: Discovery) -> str:
    if faults:
        reasons = "; ".join(f"{each.code.id} {each.code.title}: {each.message}" for each in faults)
        return f"{tool_id} cannot be used: {reasons}"
    close = get_close_matches(tool_id, [entry.name for entry in discovery.tools], 1)
    hint = f"did you mean {close[0]!r}? Otherwise install it" if close else "install it"
    return (
        f"no installed distribution, family or plugin declares the tool {tool_id!r}; "
        f"{hint}, e.g. with `pip install -e .` in its folder, into the environment that runs pytest"
    )


@dataclass(frozen=True, slots=True)
class Run:
    """One call to a tool and its result."""

    response: ToolResponse
    context: ToolContext
    reached: bool = False
    """True if the arguments were valid, so the handler was called."""
    returned: Any = None
    """The value that the handler returned, of any type."""
    raised: Exception | None = None
    seconds: float = 0.0
    changed_arguments: bool = False

    @property
    def crashed(self) -> bool:
        """True if the handler raised something other than `ToolError`."""
        return self.raised is not None and not isinstance(self.raised, ToolError)


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new loop, without touching the thread's current loop."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(main)


async def call_tool(tool: InstalledTool, arguments: dict[str, Any], context: ToolContext) -> Run:
    """Validate the arguments, fill in defaults, and run the handler; invalid arguments do not reach it."""
    violations = tool.arguments.violations(arguments)
    if violations:
        message = "; ".join(f"{violation.path}: {violation.message}" for violation in violations)
        return Run(fail(ErrorType.VALIDATION, message), context)
    tool.arguments.fill_defaults(arguments)
    return await run_once(tool, arguments, context)


async def run_once(tool: InstalledTool, given: dict[str, Any], context: ToolContext) -> Run:
    """Run the handler with exactly these arguments."""
    untouched = copy.deepcopy(given)
    recorder = _RecordingHandler(tool.handler, given)
    started = time.perf_counter()
    response = await invocation(tool, given, context, recorder)
    seconds = time.perf_counter() - started
    return Run(
        response,
        context,
        reached=True,
        returned=recorder.returned,
        raised=recorder.raised,
        seconds=seconds,
        changed_arguments=not same_json(recorder.given, untouched),
    )


def invocation(
    tool: InstalledTool, given: dict[str, Any], context: ToolContext, handler: Handler | None = None
) -> Coroutine[Any, Any, ToolResponse]:
    """Return a coroutine that runs a handler with the limits of the tool's manifest."""
    manifest = tool.manifest
    return invoke(
        handler or tool.handler, given, context, timeout_ms=manifest.timeout_ms, writes=manifest.writes
    )


class _RecordingHandler:
    """A handler that records what the wrapped one returns or raises, which the registry hides."""

    def __init__(self, handler: Handler, given: dict[str, Any]) -> None:
        self._handler = handler
        self.given = given
        self.returned: Any = None
        self.raised: Exception | None = None

    async def __call__(self, args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        # The kernel passes a copy, so a change is visible here only.
        self.given = args
        try:
            self.returned = await self._handler(args, ctx)
        except Exception as error:
            self.raised = error
            raise
        return cast("ToolResponse", self.returned)


class _UncancelledCall:
    """A call that ends only at its deadline."""

    def __init__(self) -> None:
        self.cancel_reason = ""
        self.handler_task = asyncio.current_task()
        self.policy_task: asyncio.Task[Any] | None = None
        self.deadline = math.inf
        self.handler_seconds = self.total_handler_seconds = 0.0


async def invoke(
    handler: Handler, args: dict[str, Any], ctx: ToolContext, *, timeout_ms: int, writes: bool
) -> ToolResponse:
    """Run a handler as the kernel does, outside any session and without policies or confirmation."""
    deadlines, call = DeadlineTimer(asyncio.get_running_loop()), _UncancelledCall()
    deadlines.running[call] = None
    deadlines.arm()
    try:
        return await run_handler(handler, args, ctx, call, timeout=timeout_ms / 1000, writes=writes)
    finally:
        del deadlines.running[call]


@dataclass(frozen=True, slots=True)
class ExampleCase:
    """One example in one mode: a call that a contract test makes."""

    tool: InstalledTool
    example: Example
    mode: Mode
    create_context: Callable[[Mode], ToolContext]

    def context(self) -> ToolContext:
        """Return a new context."""
        return self.create_context(self.mode)

    def arguments(self) -> dict[str, Any]:
        """Return a copy of the arguments as the model sends them."""
        sent: dict[str, Any] = orjson.loads(orjson.dumps(self.example.arguments))
        return sent

    def completed(self) -> dict[str, Any]:
        """Return a copy of the arguments as the handler gets them, with defaults."""
        given = self.arguments()
        self.tool.arguments.fill_defaults(given)
        return given

    @property
    def valid(self) -> bool:
        """True if the schema accepts the arguments; test_examples checks whether it should."""
        return not self.tool.arguments.violations(self.arguments())

    def run(self) -> Run:
        """Call the tool once, as the registry does."""
        return run_async(call_tool(self.tool, self.arguments(), self.context()))

    def fail_on(self, problems: Iterable[str]) -> None:
        """Fail the test if there are problems; the message names the call."""
        listed = list(problems)
        if listed:
            sent = report.shorten(json.dumps(self.example.arguments, ensure_ascii=False))
            heading = f"{self.tool.manifest.tool_id} in {self.mode}, called with {sent}"
            raise report.failure("\n".join([heading, *map(report.item, listed)]))
