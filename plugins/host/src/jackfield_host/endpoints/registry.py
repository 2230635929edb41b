"""`/tools` and `/registry`: the tools that are offered, and the registry that is served."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from jackfield import Mode
from jackfield.contract.snapshot import Snapshot, SnapshotError, previous
from jackfield.registry.registry import RegisteredTool, Registry
from jackfield.toolsets import Toolset
from jackfield_sessions.instructions import tool_tokens
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import Endpoint, EndpointParameter, RequestContext, ResponseForm
from jackfield_host.errors import HttpError

if TYPE_CHECKING:
    from jackfield_builder.snapshot_diff import SnapshotChange

MODES: tuple[Mode, ...] = get_args(Mode)


async def tools(context: RequestContext) -> Response:
    """List the tools that a new session of the user would have: all, or those of one mode."""
    registry, toolset = context.sessions.runtime.registry, _toolset(context)
    modes = context.request.query_params.getlist("mode")
    if any(mode not in MODES for mode in modes) or len(modes) > 1:
        raise HttpError(
            400, "invalid", f"Invalid query parameter `mode`: expected one of {', '.join(MODES)}."
        )
    wanted = set(modes or MODES)
    found = [
        tool for tool in registry.catalog(toolset).tools.values() if wanted & set(tool.manifest.allowed_modes)
    ]
    return JSONResponse(
        {
            "registry": registry.version,
            "tools": [_summary(tool, context) for tool in found],
            "prompts": [prompt.to_wire() for prompt in context.sessions.factory.prompts_for(toolset)],
        }
    )


async def tool(context: RequestContext) -> Response:
    """Return everything about one tool that a client can use."""
    registry = context.sessions.runtime.registry.catalog(_toolset(context))
    asked = context.request.path_params["tool"]
    found = registry.get(asked)
    if found is None:
        why = registry.withheld.get(asked)
        close = get_close_matches(asked, registry.tools, 1)
        raise HttpError(
            404,
            "not_found",
            f"{asked[:64]!r} is withheld: it {why}." if why else f"There is no tool {asked[:64]!r}.",
            suggestion=f"Did you mean {close[0]!r}?" if close else "GET /tools lists the tools.",
        )
    metadata = found.manifest.metadata()
    shown = ("description", "idempotent", "latencyBudgetMs", "timeoutMs", "requires", "returns")
    frozen = found.frozen
    return JSONResponse(
        {
            **_summary(found, context),
            **{name: metadata[name] for name in shown},
            "parameters": dict(found.manifest.parameters),
            "guide": frozen.documentation,
            "providerSchemas": dict(frozen.provider_schemas),
            "distribution": frozen.distribution,
            "distributionVersion": frozen.distribution_version,
            "family": frozen.family,
        }
    )


def _summary(tool: RegisteredTool, context: RequestContext) -> dict[str, Any]:
    from jackfield_host.response_models import ToolSummary

    metadata = tool.manifest.metadata()
    names = [field.alias for field in ToolSummary.model_fields.values() if field.alias in metadata]
    prompts = context.sessions.factory.prompts_for(_toolset(context))
    tokens = tool_tokens(prompts, tool.id)
    return {
        **{name: metadata[name] for name in names if name},
        **({"variant": tool.variant} if tool.variant else {}),
        "summary": tool.frozen.summary,
        "tokens": tokens,
    }


def _toolset(context: RequestContext) -> Toolset | None:
    """Return the toolset of the user's new sessions."""
    return context.sessions.runtime.toolsets.choose(**context.identity.session_fields)


async def registry(context: RequestContext) -> Response:
    """Return the registry that new sessions use."""
    served, toolset = context.sessions.runtime.registry, _toolset(context)
    snapshot = served.snapshot()
    tools = [
        {
            "toolId": frozen.manifest.tool_id,
            "version": frozen.manifest.version,
            "distribution": frozen.distribution,
            "distributionVersion": frozen.distribution_version,
            "contentHash": frozen.content_hash,
            "family": frozen.family,
            **({"variant": frozen.manifest.variant} if frozen.manifest.variant else {}),
        }
        for frozen in snapshot.implementations.values()
        # For a user with a toolset, other tools and variants do not exist.
        if toolset is None or toolset.uses(frozen)
    ]
    return JSONResponse(
        {
            "version": snapshot.version,
            "contentHash": snapshot.content_hash,
            "deployment": served.deployment.value,
            "policies": [policy["name"] for policy in snapshot.wire["policies"]],
            "chain": snapshot.wire["policies"],
            "plugins": [_plugin(plugin) for plugin in snapshot.wire["plugins"]],
            "kernel": snapshot.wire["kernel"]["version"],
            "gitCommit": snapshot.wire["gitCommit"],
            "builtAt": snapshot.wire["buildTimestamp"],
            "tools": tools,
            "distributions": snapshot.wire.get("distributions", []),
            "withheld": dict(served.catalog(toolset).withheld),
        }
    )


def _plugin(frozen: Mapping[str, Any]) -> dict[str, Any]:
    offers = {hook.removeprefix("jackfield_"): names for hook, names in frozen["offers"].items() if names}
    return {
        "name": frozen["name"],
        "distribution": frozen["distribution"]["name"],
        "distributionVersion": frozen["distribution"]["version"],
        "offers": offers,
    }


async def registry_diff(context: RequestContext) -> Response:
    """Return what has changed since the previous registry, or will change after a restart."""
    return JSONResponse(await asyncio.to_thread(_diff, context.sessions.runtime.registry))


def _diff(served: Registry) -> dict[str, Any]:
    """Compare the registry with a newer file or else the previous one; `from` is null without either."""
    snapshot = served.snapshot()
    with suppress(SnapshotError):
        if served.path is not None:
            newest = Snapshot.load(served.path)
            if newest.version != snapshot.version:
                return _compare(snapshot, newest, waiting=True)
            return _compare(Snapshot.load(previous(served.path)), snapshot, waiting=False)
    return {"from": None, "to": snapshot.version, "waiting": False, "changes": []}


def _compare(before: Snapshot, after: Snapshot, *, waiting: bool) -> dict[str, Any]:
    from jackfield_builder.snapshot_diff import compare_snapshots

    return {
        "from": before.version,
        "to": after.version,
        "waiting": waiting,
        "changes": [_change(change) for change in compare_snapshots(before, after)],
    }


def _change(change: SnapshotChange) -> dict[str, Any]:
    bump = change.bump.name.lower() if change.bump else None
    return {"subject": change.subject or None, "what": change.what, "bump": bump}


TOOLS = Endpoint(
    "GET",
    "/tools",
    "The tools that are offered.",
    tools,
    parameters=(
        EndpointParameter(
            "mode", "query", "Only tools for this mode.", {"type": "string", "enum": list(MODES)}
        ),
    ),
    responses={200: (ResponseForm("The tools, with the main facts about each.", "ToolList"),)},
    errors={400: "There is no such mode."},
)

TOOL = Endpoint(
    "GET",
    "/tools/{tool}",
    "Everything about one tool.",
    tool,
    parameters=(
        EndpointParameter(
            "tool", "path", "The tool's id.", {"type": "string", "maxLength": 100}, required=True
        ),
    ),
    responses={200: (ResponseForm("The tool.", "ToolDetails"),)},
    errors={404: "There is no such tool, or it is withheld."},
)

REGISTRY = Endpoint(
    "GET",
    "/registry",
    "The registry that new sessions use.",
    registry,
    responses={200: (ResponseForm("The registry.", "RegistryResponse"),)},
)

REGISTRY_DIFF = Endpoint(
    "GET",
    "/registry/diff",
    "What has changed since the previous registry, or will change after a restart.",
    registry_diff,
    responses={200: (ResponseForm("The changes.", "RegistryDiff"),)},
)
