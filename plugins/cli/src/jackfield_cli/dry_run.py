"""A dry run: recorded calls pass the policies and the validation of another registry, without effects.

The calls go through the real chain of policies on a store in memory whose clock shows the recorded time. No
handler runs, except those of reads if results are compared. There are no observers and no intents.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import orjson
from jackfield.call_events import tool_end
from jackfield.components import PluginComponents
from jackfield.contract.context import ToolContext
from jackfield.contract.snapshot import Snapshot
from jackfield.contract.tool import ErrorType, ToolCall, ToolResponse, fail
from jackfield.governance import DUPLICATES
from jackfield.offers import Services
from jackfield.orchestrator import CallResult, Orchestrator
from jackfield.protocol.messages import ToolComplete
from jackfield.registry.registry import Deployment, RegisteredTool, Registry
from jackfield.session.session import Session, Turn
from jackfield.settings import Settings
from jackfield.store import MemoryStore
from jackfield.strict_json import pointer

from jackfield_cli.recorded_calls import Outcome, RecordedCall

MAX_SESSIONS = 10_000
"""The maximum number of sessions in memory; if an evicted session returns, its turn starts again."""

KEPT_TURNS = 5
"""The maximum number of turns in memory per session: a call may arrive after the next turn has begun."""

MAX_WAITING = 100
"""The maximum number of calls in memory per session that waited for approval."""

MAX_PATHS = 20
"""The maximum number of differing paths that are named for a result."""

# Their decisions depend on the call, its session and the calls before it, which are all recorded.
_REPRODUCIBLE = frozenset({"modes", "availability", "rate_limits", "budgets", "loops"})

Verdict = Literal[
    "same",
    "invalid",
    "refused",
    "withheld",
    "unknown",
    "confirmation",
    "no_confirmation",
    "accepted",
    "differs",
    "undetermined",
]
"""The effect of the other registry on a call; docs/replay.md explains each verdict."""


class Change(NamedTuple):
    """The effect of the other registry on one recorded call."""

    verdict: Verdict
    detail: str = ""
    paths: tuple[str, ...] = ()
    """The paths at which a result differs."""


_SAME = Change("same")


class DryRun:
    """Checks recorded calls against a registry, in the order in which they arrived."""

    def __init__(
        self,
        registry: Registry,
        components: PluginComponents,
        current: Snapshot | None,
        *,
        roles: frozenset[str] | None,
        answers: bool,
        deadline: float,
    ) -> None:
        """`current` is the registry of the recording, if known; without `roles`, users have every role."""
        self._registry = registry
        self._components = components
        self._current = current
        self._roles = roles
        self._every_role = frozenset(role for tool in registry.tools.values() for role in _roles_of(tool))
        self._answers = answers
        self._now = 0.0
        self._store = MemoryStore(clock=lambda: self._now)
        self._sessions: OrderedDict[str, _ReplayedSession] = OrderedDict()
        for tool in registry.tools.values():
            tool.timeout = min(tool.timeout, deadline)
            if not (answers and _is_comparable(tool)):
                tool.handler = _not_run
        self._orchestrator = self._create_orchestrator()

    @classmethod
    def start(cls, settings: Settings, against: Path, current: Snapshot | None, **options: Any) -> Self:
        """Load the registry as a production host does: a tool that it cannot serve is withheld."""
        settings = replace(settings, registry=against, deployment="production", store="memory")
        registry = Registry.load(against, Deployment.PRODUCTION)
        components = PluginComponents.of(registry.snapshot(), settings, registry.drift)
        for tool in list(registry.tools.values()):
            if reason := components.withheld_reason(tool.frozen):
                registry.withhold(tool.id, reason)
        components.faults.check()
        created = cls(registry, components, current, **options)
        components.faults.check()
        return created

    @property
    def version(self) -> str:
        """The version of the registry."""
        return self._registry.version

    def _create_orchestrator(self) -> Orchestrator:
        components = self._components
        offered = {each.name for each in components.plugins.of("jackfield_capabilities")}
        services = Services(self._store, frozenset(offered - set(components.unavailable)))
        # Capabilities open files and connections, so they are only created for handlers that need them.
        capabilities = components.create_all("capabilities", services) if self._answers else {}
        services = replace(services, instances=capabilities)
        policies = components.create_all("policies", services)
        chain = [
            (offer.name, offer.stage, policies[offer.name])
            for offer, _ in components.plugins.policy_chain()
            # Repeated deliveries are marked in the recording, and every other call is a new one.
            if offer.name in policies and offer.name != DUPLICATES
        ]
        return Orchestrator(self._registry, chain, capabilities=capabilities)

    async def close(self) -> None:
        """Close the capabilities."""
        await self._components.close()

    async def check(self, recorded: RecordedCall) -> Change | None:
        """Return the change for a call; None for the approved run of a call that was checked before."""
        self._now = max(self._now, recorded.at)
        replayed = self._session_of(recorded)
        if not replayed.is_new_call(recorded):
            return None
        tool = self._registry.tools.get(recorded.tool)
        if tool is None:
            return self._missing(recorded)
        sent = ToolCall(tool.id, _text(self._arguments(tool, recorded)), recorded.call_id)
        session, turn = replayed.session, replayed.turn(recorded)
        (result,) = await self._orchestrator.handle(session, [sent], turn)
        outcome, policy = _outcome(result)
        if outcome == "asked":
            await self._forget_confirmations(session)
            if recorded.waived and tool.manifest.requires_confirmation == "policy":
                outcome = "ran"
        doubt = self._doubt(tool, recorded, outcome)
        if doubt:
            return Change("undetermined", doubt)
        message = result.response.failure.message if result.response.failure else ""
        change = _compare(recorded, outcome, policy, message)
        if change is _SAME and recorded.answered and self._answers and _is_comparable(tool):
            return _compare_answers(recorded.data, result)
        return change

    def _missing(self, recorded: RecordedCall) -> Change:
        if recorded.outcome == "unknown":
            return _SAME
        if reason := self._registry.withheld.get(recorded.tool):
            return Change("withheld", f"{recorded.tool} {reason}")
        return Change("unknown", f"the registry has no tool {recorded.tool!r}")

    def _session_of(self, recorded: RecordedCall) -> _ReplayedSession:
        found = self._sessions.get(recorded.session)
        if found is None:
            if len(self._sessions) >= MAX_SESSIONS:
                self._sessions.popitem(last=False)
            roles = self._every_role if self._roles is None else self._roles
            session = Session(
                recorded.mode,
                self.version,
                session_id=recorded.session,
                user=recorded.user,
                roles=roles,
                opened_at=recorded.at,
            )
            found = self._sessions[recorded.session] = _ReplayedSession(session)
        self._sessions.move_to_end(recorded.session)
        return found

    def _arguments(self, tool: RegisteredTool, recorded: RecordedCall) -> Mapping[str, Any] | str:
        """Return the arguments to check: those that the model wrote, as far as the recording shows them."""
        given = recorded.arguments
        if given is None:
            return {}
        if isinstance(given, str) or not recorded.defaults_filled or tool.arguments.is_valid(given):
            return given
        # The host added defaults before it recorded the arguments. A parameter that the registry no longer
        # has, with its former default, was most likely not sent.
        former = self._current.tools.get(recorded.tool) if self._current else None
        if former is None:
            return given
        sent = _without_defaults(given, former.manifest.parameters)
        return sent if tool.arguments.is_valid(sent) else given

    async def _forget_confirmations(self, session: Session) -> None:
        # Nobody decides on them, and they would fill the memory.
        for key in await self._store.keys(f"confirmation/{session.id}/"):
            await self._store.delete(key)

    def _doubt(self, tool: RegisteredTool, recorded: RecordedCall, outcome: Outcome | None) -> str:
        """Return why the recording does not show what would happen; empty if it does."""
        if outcome is None:
            return "a policy failed on this call"
        if outcome in ("ran", "invalid") and not recorded.complete:
            return "the recording does not contain all arguments"
        if recorded.outcome == "refused" and outcome == "ran" and recorded.policy not in _REPRODUCIBLE:
            return f"{recorded.policy} refused it for a reason that the recording does not contain"
        if self._roles is None and _roles_of(tool) and outcome != "refused" and self._changed_roles(tool):
            return "the tool's availability depends on the user's roles; give them with --role"
        return ""

    def _changed_roles(self, tool: RegisteredTool) -> bool:
        former = self._current.tools.get(tool.id) if self._current else None
        return former is None or former.manifest.availability != tool.manifest.availability


class _ReplayedSession:
    """A session of the recording, with its latest turns and the calls that waited for approval."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._turns: OrderedDict[int, Turn] = OrderedDict()
        self._waiting: OrderedDict[tuple[str, str | None], None] = OrderedDict()

    def turn(self, recorded: RecordedCall) -> Turn:
        found = self._turns.get(recorded.turn)
        if found is None:
            found = self._turns[recorded.turn] = Turn(recorded.turn)
            if len(self._turns) > KEPT_TURNS:
                self._turns.popitem(last=False)
        found.user_text = recorded.said
        self.session.turn = found
        return found

    def is_new_call(self, recorded: RecordedCall) -> bool:
        """Return False for the line about the user's decision on a call that was checked before."""
        key = recorded.tool, recorded.call_id
        if recorded.decided and key in self._waiting:
            del self._waiting[key]
            return False
        if recorded.outcome == "asked" and not recorded.decided:
            self._waiting[key] = None
            if len(self._waiting) > MAX_WAITING:
                self._waiting.popitem(last=False)
        return True


async def _not_run(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:  # noqa: ARG001
    """Replace the handler of a tool that must not run, even if the handler of a read calls it."""
    return fail(ErrorType.PERMANENT, "This tool is not run in a replay, because it may have effects.")


def _is_comparable(tool: RegisteredTool) -> bool:
    """Return whether a tool may run to compare its result: it is read-only and not on a foreign server."""
    return tool.reads and not tool.needs_approval and tool.frozen.origin is None


def _roles_of(tool: RegisteredTool) -> tuple[str, ...]:
    availability = tool.manifest.availability or {}
    return tuple(availability.get("user", {}).get("roles", ()))


def _text(arguments: Mapping[str, Any] | str) -> str | bytes:
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments)


def _without_defaults(given: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments without those that equal their default, including in nested objects."""
    properties = parameters.get("properties", {})
    sent: dict[str, Any] = {}
    for name, value in given.items():
        schema = properties.get(name)
        schema = schema if isinstance(schema, Mapping) else {}
        if "default" in schema and schema["default"] == value:
            continue
        sent[name] = _without_defaults(value, schema) if isinstance(value, Mapping) else value
    return sent


def _outcome(result: CallResult) -> tuple[Outcome | None, str]:
    """Return the outcome of a replayed call, None if it is unknown, and the policy that refused the call."""
    call, failure = result.call, result.response.failure
    if call is not None and call.invocations:
        return "ran", ""
    if failure is None or call is None:
        return None, ""
    if failure.type is ErrorType.CONFIRMATION_REQUIRED:
        return "asked", ""
    if failure.type is ErrorType.VALIDATION:
        return "invalid", ""
    return ("refused", call.ended_by) if call.ended_by else (None, "")


def _compare(recorded: RecordedCall, now: Outcome | None, policy: str, message: str) -> Change:
    then = recorded.outcome
    if now == "refused":
        same = then == "refused" and recorded.policy == policy
        return _SAME if same else Change("refused", f"{policy}: {message}")
    if now == "invalid":
        return _SAME if then == "invalid" else Change("invalid", message)
    if then in (now, None):
        return _SAME
    if then == "ran":
        return Change("confirmation", "it ran without confirmation")
    if then == "asked":
        return Change("no_confirmation", "the user was asked when the call was recorded")
    was = {"invalid": "invalid", "refused": f"refused by {recorded.policy}"}.get(str(then), "unknown")
    return Change("accepted", f"it was {was}" + (", and needs confirmation now" if now == "asked" else ""))


def _compare_answers(recorded: Any, result: CallResult) -> Change:
    # Cut like the recorded result, so that only the part that was recorded is compared.
    now = tool_end(result)
    if not isinstance(now, ToolComplete):
        return Change("differs", f"it succeeded, but now fails with {now.error_type}: {now.message}", ("/",))
    try:
        paths = tuple(islice(differing_paths(recorded, now.data), MAX_PATHS + 1))
    except RecursionError:
        return Change("undetermined", "the results are nested too deeply to be compared")
    if not paths:
        return _SAME
    if len(paths) > MAX_PATHS:
        return Change("differs", f"the result differs in more than {MAX_PATHS} places", paths[:MAX_PATHS])
    return Change("differs", "the result differs", paths)


def differing_paths(old: Any, new: Any, at: tuple[str | int, ...] = ()) -> Iterator[str]:
    """Yield the JSON pointers of all values that were added, removed or changed."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            if name in old and name in new:
                yield from differing_paths(old[name], new[name], (*at, name))
            else:
                yield pointer(*at, name)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            if index < min(len(old), len(new)):
                yield from differing_paths(old[index], new[index], (*at, index))
            else:
                yield pointer(*at, index)
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield pointer(*at)
