"""Chat completions: which conversation a request belongs to, and whether it is well formed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jackfield_testkit.providers.openai.chat_model import ChatModel
from jackfield_testkit.providers.openai.exchange import Exchange
from jackfield_testkit.providers.openai.violations import Violations, error_body


class Conversations:
    """Every conversation so far; a request that repeats one's messages and adds to them continues it."""

    def __init__(self, begin: Callable[[], ChatModel], violations: Violations) -> None:
        self._begin = begin
        self._violations = violations
        self._models: list[ChatModel] = []
        self._ended: set[int] = set()
        self._requests = 0

    def end(self, model: ChatModel) -> None:
        """A model that has nothing more to say: what continues its conversation begins a new one."""
        self._ended.add(id(model))
        model.ends()

    def take(self, request: Mapping[str, Any]) -> Exchange:
        """Hand a request to its model."""
        self._requests += 1
        exchange = Exchange(self._requests, request)
        if wrong := _wrong(request):
            self._violations.note("invalid_request_error", wrong)
            exchange.fail(400, error_body("invalid_request_error", wrong))
            return exchange
        model = self._of(exchange.messages)
        if model is None:
            model = self._begin()
            self._models.append(model)
        model.take(exchange)
        return exchange

    def _of(self, messages: Sequence[Mapping[str, Any]]) -> ChatModel | None:
        for model in reversed(self._models):
            if id(model) in self._ended:
                continue
            before = model.exchanges[-1].messages
            if len(before) <= len(messages) and messages[: len(before)] == before:
                return model
        return None


def _wrong(request: Mapping[str, Any]) -> str:
    """What OpenAI would refuse, in its own terms; empty when there is nothing."""
    messages = request.get("messages")
    if not isinstance(request.get("model"), str) or not isinstance(messages, list) or not messages:
        return "`model` and a list of `messages` are required"
    names = [each["function"]["name"] for each in request.get("tools") or ()]
    if len(names) != len(set(names)):
        return "two tools have the same name"
    open_calls: set[str] = set()
    for place, message in enumerate(messages):
        if wrong := _wrong_message(message, open_calls):
            return f"messages[{place}]: {wrong}"
    return f"tool calls {sorted(open_calls)} have no tool message" if open_calls else ""


def _wrong_message(message: Mapping[str, Any], open_calls: set[str]) -> str:
    """What is wrong with one message after those before it, which left these calls open."""
    role = message.get("role")
    if role not in ("system", "developer", "user", "assistant", "tool"):
        return f"unknown role {role!r}"
    if role == "tool":
        if message.get("tool_call_id") not in open_calls:
            return "a tool message has to answer a preceding tool call"
        open_calls.discard(message["tool_call_id"])
        return ""
    if open_calls:
        return f"tool calls {sorted(open_calls)} have no tool message"
    calls = message.get("tool_calls") or ()
    open_calls.update(each["id"] for each in calls)
    return "" if calls or isinstance(message.get("content"), str) else "no content"
