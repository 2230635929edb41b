"""A server's requests for a text of the session's model: refused, shown to the user first, or allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from host_harness import Client, running_host, scripted_provider
from jackfield_mcp_tools.model_requests import UnsuitableRequestError, model_request
from jackfield_mcp_tools.settings import ServerSettings
from jackfield_scripted import Script, ScriptedCall, ScriptedModel
from mcp_types import (
    AudioContent,
    CreateMessageRequestParams,
    ImageContent,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
)
from shop_host import ERAS, PATHS, ShopFolder, asked_forms, shop_folder

POEM = "Tea is free."


@pytest.fixture
def folder(
    shop_site: Path, tmp_path: Path, path: str, server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ShopFolder]:
    """Return the working folder of a host, with a running shop that may ask for texts."""
    monkeypatch.syspath_prepend(str(shop_site))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HST_KEY", "sk-test")
    with shop_folder(shop_site, tmp_path, path, **{"sampling": "ask", **server}) as made:
        yield made


def composing(kind: str) -> Script:
    """Return a model that has the shop compose something, and reports that it did."""

    async def play(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("shop__compose", {"kind": kind}))
        await model.says("Done.")

    return play


async def poet(model: ScriptedModel) -> None:
    """Write a poem, for a request that has neither tools nor the conversation."""
    said = await model.hears()
    assert said.text == "A poem on tea\u202e."
    assert model.tools == {}
    assert "The program's own instructions:\nRhyme." in model.instructions
    await model.says(POEM)


async def decide(client: Client, *, allow: bool, number: int = 1) -> dict[str, Any]:
    """Answer the question whether the model may answer; return it."""
    await client.until(lambda: len(asked_forms(client)) >= number)
    form = asked_forms(client)[number - 1]
    await client.say("form_submit", formId=form["formId"], values={"allow": allow})
    return form


@PATHS
async def test_the_model_answers_a_request_that_the_user_has_seen_and_approved(folder: ShopFolder) -> None:
    async with (
        scripted_provider(composing("poem"), poet) as served,
        running_host(folder, served) as host,
        host.client("text", forms=True) as ada,
    ):
        await ada.say("text", text="my secret plan")
        form = await decide(ada, allow=True)
        done = await ada.until_type("tool_complete")
        answer = json.loads(done["data"]["text"])
        # The server learns the text, and nothing about the model.
        assert answer == {"text": POEM, "model": "jackfield", "stopReason": "endTurn"}
        assert form["askedBy"] == "the MCP server shop"
        shown = form["description"]
        assert shown.startswith("The MCP server shop wants your model to write at most 500 tokens.")
        assert "its instructions: Rhyme." in shown
        assert r"the user: A poem on tea\u202e." in shown
        asked = served.server.requests[1]
        assert "my secret plan" not in json.dumps(asked)
        assert asked["max_tokens"] == 500
        (line,) = await folder.audited(1)
        assert {"event": "mcp_sampling", "server": "shop", "characters": len(POEM)} in line["notes"]


@ERAS
async def test_without_the_users_approval_the_model_is_not_asked(folder: ShopFolder) -> None:
    async with (
        scripted_provider(composing("poem")) as served,
        running_host(folder, served) as host,
        host.client("text", forms=True) as ada,
    ):
        await ada.say("text", text="go")
        await decide(ada, allow=False)
        failed = await ada.until_type("tool_error")
        assert failed["errorType"] == "PERMANENT"
        await ada.until_type("turn_complete")
        assert len(served.server.requests) == 2
    assert not any(line.startswith("composed") for line in folder.shop.journal())


@ERAS
async def test_without_a_client_that_shows_forms_nobody_can_approve(folder: ShopFolder) -> None:
    async with (
        scripted_provider(composing("poem")) as served,
        running_host(folder, served) as host,
        host.client("text") as ada,
    ):
        await ada.say("text", text="go")
        await ada.until_type("tool_error")
        assert asked_forms(ada) == []


@ERAS
@pytest.mark.parametrize("server", [{"sampling": "allow", "sampling_requests": 2, "sampling_tokens": 7}])
async def test_allowed_requests_are_limited_in_number_and_length(folder: ShopFolder) -> None:
    async with (
        scripted_provider(composing("greedy"), poet, poet) as served,
        running_host(folder, served) as host,
        host.client("text", forms=True) as ada,
    ):
        await ada.say("text", text="go")
        await ada.until_type("tool_error")
        await ada.until_type("turn_complete")
        assert [each.get("max_tokens") for each in served.server.requests] == [None, 7, 7, None]
        assert asked_forms(ada) == []
    assert folder.shop.journal()[:2] == [f"composed {POEM}"] * 2


@ERAS
@pytest.mark.parametrize("server", [{"sampling": "allow"}])
async def test_an_unsuitable_request_does_not_reach_the_model(folder: ShopFolder) -> None:
    async with (
        scripted_provider(composing("tools")) as served,
        running_host(folder, served) as host,
        host.client("text", forms=True) as ada,
    ):
        await ada.say("text", text="go")
        await ada.until_type("tool_error")
        await ada.until_type("turn_complete")
        assert len(served.server.requests) == 2


@ERAS
@pytest.mark.parametrize("server", [{"sampling": "refuse", "elicitation": "ask"}])
async def test_by_default_no_server_may_ask_the_model(folder: ShopFolder) -> None:
    async with (
        scripted_provider(composing("poem")) as served,
        running_host(folder, served) as host,
        host.client("text", forms=True) as ada,
    ):
        await ada.say("text", text="go")
        failed = await ada.until_type("tool_error")
        assert failed["errorType"] == "PERMANENT"
        await ada.until_type("turn_complete")
        assert len(served.server.requests) == 2
        assert asked_forms(ada) == []
    assert ServerSettings(command=("x",)).sampling == "refuse"


@ERAS
@pytest.mark.parametrize("server", [{"sampling": "allow"}])
async def test_a_session_without_a_model_answers_no_request(folder: ShopFolder) -> None:
    async with folder.shop.host() as host:
        failed = (await host.call("compose", kind="poem")).failure
        assert failed is not None
    assert not any(line.startswith("composed") for line in folder.shop.journal())


@pytest.mark.parametrize("server", [{"sampling": "allow"}])
async def test_a_provider_that_fails_ends_the_request_and_not_the_session(folder: ShopFolder) -> None:
    async def silent(model: ScriptedModel) -> None:
        await model.hears()
        await model.fails("server_error", "overloaded")

    async with (
        scripted_provider(composing("poem"), silent) as served,
        running_host(folder, served) as host,
        host.client("text", forms=True) as ada,
    ):
        await ada.say("text", text="go")
        await ada.until_type("tool_error")
        await ada.until_type("turn_complete")
        assert ada.said("assistant") == ["Done."]


async def test_a_stopped_call_withdraws_the_question(folder: ShopFolder) -> None:
    async with (
        scripted_provider(composing("poem")) as served,
        running_host(folder, served) as host,
        host.client("text", forms=True) as ada,
    ):
        await ada.say("text", text="go")
        await ada.until(lambda: asked_forms(ada))
        (form,) = asked_forms(ada)
        await ada.say("cancel", callId=form["callId"])
        closed = await ada.until_type("form_closed")
        assert (closed["formId"], closed["submitted"]) == (form["formId"], False)


def said(role: Any, *contents: Any) -> SamplingMessage:
    return SamplingMessage(role=role, content=list(contents))


TEXT = TextContent(type="text", text="A poem.")
TOOL = Tool(name="spy", input_schema={"type": "object"})


@pytest.mark.parametrize(
    "asked",
    [
        {"tools": [TOOL]},
        {"tool_choice": ToolChoice(mode="auto")},
        {"messages": []},
        {"messages": [said("user", TEXT)] * 51},
        {"messages": [said("user", TEXT), said("assistant", TEXT)]},
        {"messages": [said("user", ImageContent(type="image", data="AA==", mime_type="image/png"))]},
        {"messages": [said("user", TEXT, AudioContent(type="audio", data="AA==", mime_type="audio/wav"))]},
        {"messages": [said("user", TextContent(type="text", text=" "))]},
        {"system_prompt": "\u00e9" * 10_000},
    ],
    ids=str,
)
def test_requests_are_short_texts_without_tools(asked: dict[str, Any]) -> None:
    params = CreateMessageRequestParams(**{"messages": [said("user", TEXT)], "max_tokens": 5, **asked})
    with pytest.raises(UnsuitableRequestError):
        model_request(params, ServerSettings(command=("x",)))


def test_the_time_for_a_text_must_be_shorter_than_that_of_the_call() -> None:
    with pytest.raises(ValueError, match="sampling_timeout: must be less than `timeout`"):
        ServerSettings(command=("x",), sampling="allow", timeout=30.0)
