"""`/tools`, `/registry` and `/metrics`: what there is, and what it does."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, get_args

from jackfield import Mode
from jackfield.registry.registry import RegisteredTool
from jackfield_sessions.instructions import tool_tokens
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import Operation, Parameter, Said
from jackfield_host.endpoints.visit import Visit, is_operator, not_operator
from jackfield_host.errors import HttpError
from jackfield_host.wire.answers import RegistryAnswer, ToolDetails, ToolList, ToolSummary

MODES: tuple[Mode, ...] = get_args(Mode)

OPERATOR = "operator"
"""The role of those who run the host, where tokens are in use."""

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def tools(visit: Visit) -> Response:
    """The tools that are offered, all or those of a mode."""
    registry = visit.sessions.runtime.registry
    modes = visit.request.query_params.getlist("mode")
    if any(mode not in MODES for mode in modes) or len(modes) > 1:
        raise HttpError(400, "invalid", f"The query, at mode: one of {', '.join(MODES)} is wanted.")
    wanted = set(modes or MODES)
    found = [tool for tool in registry.tools.values() if wanted & set(tool.manifest.allowed_modes)]
    return JSONResponse(
        {
            "registry": registry.version,
            "tools": [_summary(tool, visit) for tool in found],
            "prompts": [prompt.to_wire() for prompt in visit.sessions.factory.prompts],
        }
    )


async def tool(visit: Visit) -> Response:
    """Everything about one tool that a client can use."""
    registry = visit.sessions.runtime.registry
    asked = visit.request.path_params["tool"]
    found = registry.get(asked)
    if found is None:
        why = registry.withheld.get(asked)
        close = get_close_matches(asked, registry.tools, 1)
        raise HttpError(
            404,
            "not_found",
            f"{asked[:64]!r} is withheld: it {why}." if why else f"There is no tool {asked[:64]!r}.",
            suggestion=f"Did you mean {close[0]!r}?" if close else "GET /tools lists them.",
        )
    facts = found.manifest.metadata()
    told = ("description", "idempotent", "latencyBudgetMs", "timeoutMs", "requires", "returns")
    frozen = found.frozen
    return JSONResponse(
        {
            **_summary(found, visit),
            **{name: facts[name] for name in told},
            "parameters": dict(found.manifest.parameters),
            "guide": frozen.documentation,
            "providerSchemas": dict(frozen.provider_schemas),
            "distribution": frozen.distribution,
            "distributionVersion": frozen.distribution_version,
        }
    )


def _summary(tool: RegisteredTool, visit: Visit) -> dict[str, Any]:
    facts = tool.manifest.metadata()
    names = [field.alias for field in ToolSummary.model_fields.values() if field.alias in facts]
    tokens = tool_tokens(visit.sessions.factory.prompts, tool.id)
    return {
        **{name: facts[name] for name in names if name},
        "summary": tool.frozen.summary,
        "tokens": tokens,
    }


async def registry(visit: Visit) -> Response:
    """The registry that sessions are pinned to."""
    held = visit.sessions.runtime.registry
    snapshot = held.snapshot()
    parts = [
        {
            "toolId": tool_id,
            "version": frozen.manifest.version,
            "distribution": frozen.distribution,
            "distributionVersion": frozen.distribution_version,
            "contentHash": frozen.content_hash,
        }
        for tool_id, frozen in snapshot.tools.items()
    ]
    return JSONResponse(
        {
            "version": snapshot.version,
            "contentHash": snapshot.content_hash,
            "deployment": held.deployment.value,
            "policies": [policy["name"] for policy in snapshot.wire["policies"]],
            "chain": snapshot.wire["policies"],
            "plugins": [_plugin(plugin) for plugin in snapshot.wire["plugins"]],
            "kernel": snapshot.wire["kernel"]["version"],
            "gitCommit": snapshot.wire["gitCommit"],
            "builtAt": snapshot.wire["buildTimestamp"],
            "tools": parts,
            "distributions": snapshot.wire.get("distributions", []),
            "withheld": dict(held.withheld),
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


async def metrics(visit: Visit) -> Response:
    """What the observer `metrics` has counted, for Prometheus."""
    if not is_operator(visit.house, visit.identity):
        raise not_operator()
    for observer in visit.sessions.runtime.orchestrator.observers:
        if write := getattr(observer, "prometheus", None):
            return Response(write(), media_type=METRICS_TYPE)
    raise HttpError(
        404,
        "no_metrics",
        "Nothing is counted here.",
        suggestion="Install jackfield-observability and run `jackfield build`.",
    )


_TOOL = Parameter("tool", "path", "The tool's id.", {"type": "string", "maxLength": 100}, required=True)

TOOLS = Operation(
    "GET",
    "/tools",
    "The tools that are offered.",
    tools,
    parameters=(
        Parameter("mode", "query", "Only those of this mode.", {"type": "string", "enum": list(MODES)}),
    ),
    answers={200: (Said("The tools, each in short.", ToolList),)},
    fails={400: "There is no such mode."},
)

TOOL = Operation(
    "GET",
    "/tools/{tool}",
    "Everything about one tool.",
    tool,
    parameters=(_TOOL,),
    answers={200: (Said("The tool.", ToolDetails),)},
    fails={404: "There is no such tool, or it is withheld."},
)

REGISTRY = Operation(
    "GET",
    "/registry",
    "The registry that sessions are pinned to.",
    registry,
    answers={200: (Said("The registry.", RegistryAnswer),)},
)

METRICS = Operation(
    "GET",
    "/metrics",
    "What has been counted, for Prometheus.",
    metrics,
    answers={200: (Said("The text format of Prometheus.", media="text/plain"),)},
    fails={404: "The observer `metrics` is not installed."},
)
