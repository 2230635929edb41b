"""Converts the outcome of a call to an MCP result: structured content, and the same data as text."""

from __future__ import annotations

from typing import Any

import mcp_types as t
import orjson
from jackfield.orchestrator import CallResult
from jackfield.registry.registry import RegisteredTool
from mcp.shared.exceptions import MCPError

from jackfield_mcp_server.tool_pages import structured_content

META = "jackfield/meta"
"""The member of `_meta` with the envelope's `meta`."""

ERROR = "jackfield/error"
"""The member of `_meta` with the envelope's `error`, if the call failed."""

INTENTS = "jackfield/intents"
"""The member of `_meta` with the envelope's intents."""

Result = dict[str, Any]


def to_result(answer: CallResult, tool: RegisteredTool | None, note: str | None = None) -> Result:
    """Return the result of a call; raise `MCPError` if there is no such tool.

    `note` is text for the user that follows the envelope of a failure.
    """
    if answer.call is not None and not answer.call.tool.known:
        failure = answer.response.failure
        suggestion = f" {failure.suggestion}" if failure and failure.suggestion else ""
        raise MCPError(t.INVALID_PARAMS, f"{failure.message if failure else 'Unknown tool.'}{suggestion}")
    envelope: dict[str, Any] = orjson.loads(answer.wire)
    meta, returns = envelope["meta"], tool.manifest.returns if tool is not None else None
    if not envelope["ok"]:
        return error_result(envelope, note, structured=returns is None)
    if meta.get("returnsViolations"):
        return error_result(
            _violation(envelope, writes=tool is None or tool.manifest.writes), None, structured=False
        )
    data = envelope["data"]
    described: dict[str, Any] = {META: meta}
    if envelope["intents"]:
        described[INTENTS] = envelope["intents"]
    return {
        "content": [_text(data)],
        "structuredContent": structured_content(data, returns),
        "isError": False,
        "resultType": "complete",
        "_meta": described,
    }


def error_result(envelope: dict[str, Any], note: str | None, *, structured: bool) -> Result:
    """Return the envelope of a failure as a result.

    If the tool has an output schema, the envelope is not sent as structured content: such content has to
    match the schema, and some clients, such as the first version of the TypeScript SDK, reject the whole
    result otherwise.
    """
    content = [{"type": "text", "text": orjson.dumps(envelope).decode()}]
    if note:
        content.append({"type": "text", "text": note})
    return {
        "content": content,
        **({"structuredContent": envelope} if structured else {}),
        "isError": True,
        "resultType": "complete",
        "_meta": {META: envelope["meta"], ERROR: envelope["error"]},
    }


def _violation(envelope: dict[str, Any], *, writes: bool) -> dict[str, Any]:
    """Return a failure for data that does not match the output schema and so must not be the result."""
    error = {
        "type": "INTERNAL",
        "message": "The tool ran, but its result does not match the schema that it declares.",
        "retryable": False,
        "partialSideEffects": writes,
        "suggestion": "Do not repeat the call; its data is in `details`.",
        "details": {"data": envelope["data"]},
    }
    return {"ok": False, "error": error, "meta": envelope["meta"]}


def _text(data: Any) -> dict[str, str]:
    return {"type": "text", "text": data if isinstance(data, str) else orjson.dumps(data).decode()}
