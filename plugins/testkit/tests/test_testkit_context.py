"""The test context behaves like a host's context, and names what is missing."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield.contract.context import UNANSWERED, ModelAnswer, ModelRequest, UserAnswer
from jackfield_testkit import AuditLine, ProgressReport, ToolTestContext


def test_test_context_is_a_tool_context() -> None:
    context: ToolContext = ToolTestContext("voice", user="ann", turn=4)
    session = context.session
    assert (session.id, session.user, session.mode, session.turn) == ("test-session", "ann", "voice", 4)
    assert session.registry_version == "1.0.00000000"
    with pytest.raises(AttributeError):
        session.mode = "text"  # type: ignore[misc]


def test_progress_and_audit_are_recorded() -> None:
    context = ToolTestContext()
    asyncio.run(context.progress("Halfway.", fraction=0.5))
    asyncio.run(context.progress("Nearly."))
    context.audit("found", hits=3)
    assert context.progressed == [ProgressReport("Halfway.", 0.5), ProgressReport("Nearly.", None)]
    assert context.audited == [AuditLine("found", {"hits": 3})]


def test_invalid_progress_and_audit_are_rejected() -> None:
    context = ToolTestContext()
    with pytest.raises(ValueError, match="empty"):
        asyncio.run(context.progress(" "))
    with pytest.raises(ValueError, match="between 0 and 1, not 50"):
        asyncio.run(context.progress("Halfway.", fraction=50))
    with pytest.raises(TypeError, match=r"audit\('found'\): the fields are not JSON: /where"):
        context.audit("found", where=object())


def test_call_tool_uses_the_given_functions() -> None:
    async def slow(arguments: dict[str, Any]) -> ToolResponse:
        return fail(ErrorType.TRANSIENT, f"Not now, {arguments['who']}.")

    context = ToolTestContext(
        tools={"kb_search": lambda arguments: ok(arguments["query"]), "slow": slow, "wrong": lambda _: 1}
    )
    assert asyncio.run(context.call_tool("kb_search", {"query": "x"})).data == "x"
    assert not asyncio.run(context.call_tool("slow", {"who": "ann"})).ok
    assert context.called == [("kb_search", {"query": "x"}), ("slow", {"who": "ann"})]
    with pytest.raises(LookupError, match=r"no tool 'kb_get'; .*tools=\{'kb_get': function\}"):
        asyncio.run(context.call_tool("kb_get", {}))
    with pytest.raises(TypeError, match="'wrong' returned int"):
        asyncio.run(context.call_tool("wrong", {}))


def test_the_user_and_the_model_give_the_answers_of_the_test() -> None:
    context = ToolTestContext(answers=[UserAnswer("submitted", {"name": "Ada"})], texts=["Tea."])
    request = ModelRequest("Rhyme.", [("user", "A poem.")], 50, 10.0)

    async def run() -> None:
        for expected in (UserAnswer("submitted", {"name": "Ada"}), UNANSWERED):
            assert await context.ask_user("Who?", {}, asked_by="the tool", seconds=5) == expected
        assert await context.ask_model(request) == ModelAnswer("Tea.", truncated=False)
        assert await context.ask_model(request) is None
        with pytest.raises(ValueError, match="the user's message"):
            await context.ask_model(request._replace(messages=[("assistant", "A poem.")]))

    asyncio.run(run())
    assert context.asked == [("Who?", {})] * 2
    assert context.requested == [request] * 2


def test_keywords_become_capabilities() -> None:
    context = ToolTestContext("voice", kb=["a"], calendar=None)
    assert context.kb == ["a"]
    assert context.calendar is None
    assert context.used == {"kb", "calendar"}
    with pytest.raises(AttributeError, match=r"no capability 'web'; .* ToolTestContext\(mode, web=\.\.\.\)"):
        context.web  # noqa: B018
    assert copy.copy(context).kb == ["a"]
