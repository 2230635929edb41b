"""What a response came to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.contract.call import ToolCall
from jackfield.transport.events import Event, Interrupted, ToolCalls, Trouble, TurnComplete, Usage

from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.faults import told, trouble


def outcome(
    response: Mapping[str, Any],
    finished: Mapping[str, Mapping[str, Any]],
    tools: DeclaredTools,
    *,
    limited: bool = False,
) -> list[Event]:
    """The events at the end of a response; `finished` are its function calls that were completed, by id.

    Calls count only when their item and the whole response are completed: the arguments of a cancelled one
    are told as done too. `limited` says that the deployment limits the length of answers.
    """
    events = usage(response)
    status = response.get("status")
    if status == "completed":
        calls = _calls(response, finished, tools)
        events.append(ToolCalls(calls) if calls else TurnComplete())
    elif status == "cancelled":
        events.append(Interrupted())
    else:
        events.append(_shortfall(response, cut_calls=bool(finished), limited=limited))
    return events


def usage(response: Mapping[str, Any]) -> list[Event]:
    """What a response cost, where the server says so."""
    counted = response.get("usage")
    if not counted:
        return []
    return [Usage(counted.get("input_tokens") or 0, counted.get("output_tokens") or 0)]


def _calls(
    response: Mapping[str, Any], finished: Mapping[str, Mapping[str, Any]], tools: DeclaredTools
) -> tuple[ToolCall, ...]:
    items = dict(finished)
    for item in response.get("output") or ():
        if is_finished_call(item):
            items.setdefault(item["call_id"], item)
    return tuple(
        tools.call(item.get("name") or "", item.get("arguments") or "", call_id)
        for call_id, item in items.items()
    )


def is_finished_call(item: Mapping[str, Any]) -> bool:
    """Whether an item is a function call that was written to its end."""
    kind, status = item.get("type"), item.get("status")
    return kind == "function_call" and status == "completed" and bool(item.get("call_id"))


def _shortfall(response: Mapping[str, Any], *, cut_calls: bool, limited: bool) -> Event:
    """The end of a response that failed or was cut by a limit."""
    details = response.get("status_details") or {}
    error = details.get("error") or {}
    if response.get("status") == "failed":
        code = trouble(error.get("code"), error.get("type"))
        return Trouble(code, told(error.get("message")))
    if details.get("reason") == "content_filter":
        return Trouble("content_refused", "the answer was cut by the content filter")
    if cut_calls and limited:
        # A new connection with a summary would run into the same limit.
        return Trouble("server_error", "the calls ran into the limit of answer_tokens")
    if cut_calls:
        return Trouble("context_length_exceeded", "the calls ran into the length limit")
    return TurnComplete()
