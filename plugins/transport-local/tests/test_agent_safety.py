"""What must not happen, whatever the tools, the words or the model are like."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_script import Scripted, agent_session
from agent_tools import TOOLS, WRITERS, Tool
from jackfield.transport.protocol import ConnectionConfig
from jackfield_local.agent.agent import embed_phrases
from jackfield_local.agent.grounding import ground
from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.tools import tools_of
from local_requests import NOW
from local_session import Session, talk_over


def _guide(name: str, *examples: tuple[str, str]) -> str:
    shown = "\n\n".join(f"{says}\n\n```json\n{args}\n```" for says, args in examples)
    return f"# {name}\n\nDoes it.\n\n## Examples\n\n{shown}\n"


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


SEARCH: Tool = (
    "Search the wiki.",
    {"type": "object", "required": ["query"], "properties": {"query": _text("What to look for.")}},
    _guide("wiki_search", ("what are the opening hours of the pool", '{"query": "opening hours pool"}')),
)
BY_ID = {
    "type": "object",
    "required": ["page_id"],
    "properties": {"page_id": _text("As wiki_search gave it.")},
}
DELETE: Tool = (
    "Delete a page.",
    BY_ID,
    _guide("wiki_delete", ("delete page wiki:1", '{"page_id": "wiki:1"}')),
)
READ: Tool = ("Read a page.", BY_ID, _guide("wiki_read", ("open page wiki:1", '{"page_id": "wiki:1"}')))


def test_the_whole_text_of_a_result_is_never_fetched_by_a_tool_that_writes() -> None:
    found = {
        "id": "wiki:7",
        "title": "Pool",
        "text": "The pool is open from 9 to 20 on all days of the week ...",
    }

    async def steps(talk: Session) -> None:
        await talk.says("what are the opening hours of the pool?")
        await talk.gets({"results": [found]})
        assert [each.tool_id for each in talk.calls] == ["wiki_read"]
        assert "open from 9 to 20" in await talk.gets(
            error={"type": "BUDGET_EXCEEDED", "message": "No more."}
        )

    tools = {"wiki_search": SEARCH, "wiki_delete": DELETE, "wiki_read": READ}
    talk_over(tools, steps, writers=frozenset(("wiki_delete",)))


def test_a_tool_that_writes_is_no_search_even_if_its_examples_are_questions() -> None:
    schema = {
        "type": "object",
        "required": ["question"],
        "properties": {
            "question": _text("What to post."),
            "channel": {"enum": ["general", "legal"], "default": "general"},
        },
    }
    asked = ("when does the canteen open on Mondays", '{"question": "when does the canteen open on Mondays"}')
    post: Tool = ("Post a question to everybody.", schema, _guide("post_question", asked))

    async def steps(talk: Session) -> None:
        await talk.says("when does the canteen open tomorrow?")
        assert talk.calls == []

    talk_over({"post_question": post}, steps, writers=frozenset(("post_question",)))


@pytest.mark.parametrize(
    "said", ["incorrect", "not correct", "not yes", "no yes", "yes and no", "nah", "n", "maybe"]
)
def test_consent_is_never_guessed(said: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says("reserve a table for two tomorrow at 8 pm for Kim")
        await talk.says(said)
        assert talk.calls == []

    talk_over(TOOLS, steps, writers=WRITERS)


def test_words_after_an_offer_select_no_tool_by_accident() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("order me a pizza")
        await talk.says("give me a second")
        assert talk.calls == []

    talk_over(TOOLS, steps, writers=WRITERS)


def test_a_failed_call_can_be_made_again() -> None:
    async def steps(talk: Session) -> None:
        for _ in range(2):
            await talk.says("21 degrees in the kitchen")
            await talk.says("yes")
            assert talk.args == {"room": "kitchen", "celsius": 21}
            await talk.gets(error={"type": "TRANSIENT", "message": "It did not answer."})

    talk_over(TOOLS, steps, writers=WRITERS)


def test_a_text_that_the_model_shortens_from_an_identifier_is_not_taken_for_it() -> None:
    tools = {each.id: each for each in tools_of(ConnectionConfig("text", "", _declared(read=READ)))}
    message = UserMessage("open page 15", NOW, embed_phrases)
    assert ground(tools["read"], {"page_id": "1"}, message).args == {}
    assert ground(tools["read"], {"page_id": "15"}, message).args == {"page_id": "15"}


def test_a_time_zone_that_was_given_stays() -> None:
    schema = {
        "type": "object",
        "required": ["time", "zone"],
        "properties": {"time": _text("When, as HH:MM."), "zone": _text("The IANA time zone.")},
    }
    (tool,) = tools_of(ConnectionConfig("text", "", _declared(alarm=("Set an alarm.", schema, ""))))
    message = UserMessage("make it 5pm", NOW, embed_phrases, zone="Europe/Berlin")
    base = {"time": "16:00", "zone": "Asia/Tokyo"}
    assert ground(tool, None, message, base).args == {"time": "17:00", "zone": "Asia/Tokyo"}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}, "required": ["a"]},
        {"properties": {"a": {"$ref": "#/$defs/gone"}}},
        {"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}},
        {"properties": {"a": {"type": "array", "items": True}}},
        {"properties": {"a": {"type": ["integer", "null"]}}, "required": None},
        {"properties": {"a": {"enum": [1, 2, None]}}},
        {"properties": {"a": {"type": "string", "format": "uuid", "pattern": r"^\p{L}+$"}}},
        {"properties": {"a": {"type": "string", "pattern": "^([A-Z]+)+-[0-9]$"}}, "required": ["a"]},
        {"properties": [], "required": "a"},
        {},
    ],
)
def test_unusual_schemas_cause_no_error(schema: dict[str, Any]) -> None:
    for tool in tools_of(ConnectionConfig("text", "", _declared(odd=("Do it.", schema, "")))):
        for said in ("do it with 7", "A" * 900, "the second one", ""):
            ground(tool, None, UserMessage(said, NOW, embed_phrases))
            ground(tool, {"a": 7}, UserMessage(said, NOW, embed_phrases))


def test_a_reference_and_an_optional_number_are_filled() -> None:
    schema = {
        "properties": {
            "a": {"$ref": "#/$defs/A"},
            "b": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "Guests."},
        },
        "$defs": {"A": {"type": "string", "format": "date"}},
        "required": ["a", "b"],
    }
    (tool,) = tools_of(ConnectionConfig("text", "", _declared(odd=("Do it.", schema, ""))))
    found = ground(tool, None, UserMessage("tomorrow with 7 guests", NOW, embed_phrases))
    assert found.args == {"a": "2026-11-17", "b": 7}


def test_a_text_composed_by_the_model_needs_consent_before_a_write() -> None:
    schema = {"type": "object", "required": ["command"], "properties": {"command": _text("What to run.")}}
    shown = ("list the files here", '{"command": "ls -la"}'), ("how full is the disk", '{"command": "df -h"}')
    run: Tool = ("Run a command in the shell.", schema, _guide("run_command", *shown))
    model = Scripted({"run_command": {"command": "rm -rf out"}})

    async def steps() -> None:
        writers = frozenset(("run_command",))
        async with asyncio.timeout(60), agent_session({"run_command": run}, model, writers=writers) as talk:
            said = await talk.says("clean up the build in the shell")
            assert (
                said
                == "Do you mean this: Run a command in the shell (command: rm -rf out)? Please say yes or no."
            )
            assert talk.calls == []
            await talk.says("yes")
            assert talk.args == {"command": "rm -rf out"}

    asyncio.run(steps())


def test_a_text_composed_by_the_model_is_dropped_while_another_value_is_asked_for() -> None:
    required = {"command": _text("What to run."), "minutes": {"type": "integer", "description": "How long."}}
    schema = {"type": "object", "required": [*required], "properties": required}
    shown = (
        ("list the files here for 5 minutes", '{"command": "ls -la", "minutes": 5}'),
        ("how full is the disk within 2 minutes", '{"command": "df -h", "minutes": 2}'),
    )
    run: Tool = ("Run a command in the shell.", schema, _guide("run_command", *shown))
    model = Scripted({"run_command": {"command": "rm -rf out"}})

    async def steps() -> None:
        writers = frozenset(("run_command",))
        async with asyncio.timeout(60), agent_session({"run_command": run}, model, writers=writers) as talk:
            assert await talk.says("clean up the build in the shell") == "Please tell me what to run."
            dialogue: Any = talk.connection._dialogue  # type: ignore[attr-defined]
            assert dialogue.state.question.args == {}

    asyncio.run(steps())


def test_a_choice_that_was_not_said_does_not_overrule_the_refusal_of_the_model() -> None:
    reasons = {"enum": ["user_request", "task_done"], "description": "Why the session ends."}
    schema = {"type": "object", "required": ["reason"], "properties": {"reason": reasons}}
    shown = (
        ("okay bye, that is all", '{"reason": "user_request"}'),
        ("speak to you later", '{"reason": "task_done"}'),
    )
    end: Tool = ("End the spoken session.", schema, _guide("end_session", *shown))

    async def steps() -> None:
        model = Scripted({"cannot": "change the speed"})
        async with asyncio.timeout(60), agent_session({"end_session": end}, model) as talk:
            said = await talk.says("could you speak a bit slower")
            assert said == "I cannot change the speed: I have no tool for that."
            assert talk.calls == []

    asyncio.run(steps())


def test_an_interruption_clears_the_pending_question() -> None:
    async def run() -> None:
        async with asyncio.timeout(60), agent_session(TOOLS, Scripted({"cannot": "do it"})) as talk:
            dialogue: Any = talk.connection._dialogue  # type: ignore[attr-defined]
            await talk.connection.send_text("order me a pizza")
            await asyncio.sleep(0)
            await talk.connection.interrupt()
            assert dialogue.state.question is None

    asyncio.run(run())


def _declared(**tools: Tool) -> dict[str, Any]:
    return {name: {"description": told, "parameters": schema} for name, (told, schema, _) in tools.items()}
