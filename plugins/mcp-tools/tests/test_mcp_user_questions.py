"""A server's questions to the user: shown by a host as forms, over a real socket, or declined."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from host_harness import Client, Provider, running_host
from jackfield_mcp_tools.settings import ServerSettings
from jackfield_mcp_tools.user_questions import UnsuitableQuestionError, form_of
from shop_host import ERAS, PATHS, ShopFolder, asked_forms, shop_folder

FORMS = Provider("forms", SimpleNamespace(base_url=""))
ORDER = {"name": "Ada", "size": "m"}


@pytest.fixture
def folder(
    shop_site: Path, tmp_path: Path, path: str, server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ShopFolder]:
    """Return the working folder of a host, with a running shop that may ask."""
    monkeypatch.syspath_prepend(str(shop_site))
    monkeypatch.chdir(tmp_path)
    with shop_folder(shop_site, tmp_path, path, **{"elicitation": "ask", **server}) as made:
        yield made


async def start(client: Client, kind: str) -> None:
    """Have the model call the tool that asks."""
    forms, starts = len(client.of("form_request")), len(client.of("tool_start"))
    await client.say("text", text=f"form shop__survey {json.dumps({'kind': kind})}")
    form = await client.until_type("form_request", forms + 1)
    await client.say("form_submit", formId=form["formId"], values={"kind": kind})
    await client.until_type("tool_start", starts + 1)


async def question_of(client: Client) -> dict[str, Any]:
    """Wait until the server's question is shown."""
    return await client.until_type("form_request", 2)


async def answer_to(client: Client, number: int = 1) -> dict[str, Any]:
    """Return what the server got."""
    done = await client.until_type("tool_complete", number)
    answer: dict[str, Any] = json.loads(done["data"]["text"])
    return answer


@PATHS
async def test_the_user_answers_a_question_of_the_server_in_a_form(folder: ShopFolder) -> None:
    async with running_host(folder, FORMS) as host, host.client("text", forms=True) as ada:
        await start(ada, "order")
        form = await question_of(ada)
        assert form["askedBy"] == "the MCP server shop"
        assert form["description"] == "The MCP server shop asks: What shall we send?"
        assert form["callId"] == ada.of("tool_start")[0]["callId"]
        assert form["parameters"]["required"] == ["name"]
        assert form["values"] == {"size": "m"}
        assert form["parameters"]["properties"]["size"]["oneOf"][1] == {"const": "m", "title": "Medium"}
        await ada.say("form_submit", formId=form["formId"], values={"size": "xl"})
        refused = await ada.until_type("error")
        assert (refused["code"], refused["formId"]) == ("invalid_values", form["formId"])
        for _ in range(2):
            await ada.say("form_submit", formId=form["formId"], values=ORDER, clientId="c-9")
        assert await answer_to(ada) == {"action": "accept", "content": ORDER}
        closed = await ada.until_type("form_closed", 2)
        assert (closed["formId"], closed["submitted"], "values" in closed) == (form["formId"], True, False)
        # An answer is no turn of the user, and the model does not see it as one.
        assert len(ada.said("user")) == 2
        assert len(ada.of("error")) == 1
    assert folder.shop.journal() == ["answer order accept"]


@ERAS
async def test_a_dismissed_question_is_declined(folder: ShopFolder) -> None:
    async with running_host(folder, FORMS) as host, host.client("text", forms=True) as ada:
        await start(ada, "order")
        form = await question_of(ada)
        await ada.say("form_dismiss", formId=form["formId"])
        assert await answer_to(ada) == {"action": "decline", "content": None}
        await ada.until_type("form_closed", 2)
        await ada.say("form_submit", formId=form["formId"], values=ORDER)
        assert (await ada.until_type("error"))["code"] == "already_closed"


@ERAS
async def test_unsuitable_questions_are_declined_unseen(folder: ShopFolder) -> None:
    kinds = ["password", "api_key", "disguised", "url", "nested", "huge", "long"]
    async with running_host(folder, FORMS) as host, host.client("text", forms=True) as ada:
        for number, kind in enumerate(kinds, 1):
            await start(ada, kind)
            assert await answer_to(ada, number) == {"action": "decline", "content": None}
            await ada.until_type("turn_complete", 2 * number)
        assert asked_forms(ada) == []


@ERAS
@pytest.mark.parametrize("server", [{"elicitation_timeout": 0.2}])
async def test_a_question_without_an_answer_is_declined(folder: ShopFolder) -> None:
    async with running_host(folder, FORMS) as host, host.client("text", forms=True) as ada:
        await start(ada, "order")
        assert await answer_to(ada) == {"action": "decline", "content": None}
        closed = await ada.until_type("form_closed", 2)
        assert closed["submitted"] is False


@ERAS
async def test_without_a_client_that_shows_forms_a_question_is_declined(folder: ShopFolder) -> None:
    """The session of this test has no client at all."""
    async with folder.shop.host() as host:
        answer = await host.call("survey", kind="order")
        assert json.loads(answer.data["text"]) == {"action": "decline", "content": None}


@ERAS
@pytest.mark.parametrize("server", [{"elicitation": "refuse"}])
async def test_by_default_nothing_is_asked(folder: ShopFolder) -> None:
    async with running_host(folder, FORMS) as host, host.client("text", forms=True) as ada:
        await start(ada, "order")
        failed = await ada.until_type("tool_error")
        assert failed["errorType"] == "PERMANENT"
        assert asked_forms(ada) == []
    assert folder.shop.journal() == []
    assert ServerSettings(command=("x",)).elicitation == "refuse"


@PATHS
async def test_a_question_reaches_only_the_user_of_its_call(folder: ShopFolder, path: str) -> None:
    async with (
        running_host(folder, FORMS) as host,
        host.client("text", forms=True) as ada,
        host.client("text", forms=True) as bob,
    ):
        await start(ada, "order")
        hers = await question_of(ada)
        await start(bob, "order")
        await bob.until(lambda: asked_forms(bob) or bob.of("tool_complete"))
        for each in asked_forms(bob):
            await bob.say("form_submit", formId=each["formId"], values={"name": "Bob"})
        his = await answer_to(bob)
        await ada.say("form_submit", formId=hers["formId"], values={"name": "Ada"})
        assert await answer_to(ada) == {"action": "accept", "content": {"name": "Ada"}}
        if path == "old stdio":
            # Nothing says which call this request belongs to, so nobody sees it.
            assert his == {"action": "decline", "content": None}
        else:
            assert his == {"action": "accept", "content": {"name": "Bob"}}


@ERAS
async def test_a_stopped_call_withdraws_its_question(folder: ShopFolder) -> None:
    async with running_host(folder, FORMS) as host, host.client("text", forms=True) as ada:
        await start(ada, "order")
        form = await question_of(ada)
        await ada.say("cancel", callId=form["callId"])
        closed = await ada.until_type("form_closed", 2)
        assert (closed["formId"], closed["submitted"]) == (form["formId"], False)
        await ada.until_type("tool_error")


async def test_a_question_of_a_dead_host_is_closed_by_the_next_one(folder: ShopFolder) -> None:
    async with running_host(folder, FORMS) as here, running_host(folder, FORMS) as there:
        async with here.client("text", forms=True) as ada:
            await start(ada, "order")
            form, token = await question_of(ada), ada.token
        async with there.client("text", token=token, forms=True) as back:
            await back.until(lambda: form["formId"] in [each["formId"] for each in back.of("form_closed")])


async def test_a_question_is_shown_again_after_a_reconnect(folder: ShopFolder) -> None:
    async with running_host(folder, FORMS) as host:
        async with host.client("text", forms=True) as ada:
            await start(ada, "order")
            form, token = await question_of(ada), ada.token
        async with host.client("text", token=token, forms=True) as back:
            await back.until_type("caught_up")
            assert asked_forms(back) == [form]
            await back.say("form_submit", formId=form["formId"], values=ORDER)
            assert await answer_to(back) == {"action": "accept", "content": ORDER}


def test_the_time_for_an_answer_must_be_shorter_than_that_of_the_call() -> None:
    with pytest.raises(ValueError, match="elicitation_timeout: must be less than `timeout`"):
        ServerSettings(command=("x",), elicitation="ask", timeout=30.0)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "format": "password"},
        {"type": ["string", "null"]},
        {"type": "string", "enum": []},
        {"type": "string", "enum": [1]},
        {"type": "string", "enum": ["a\u200bb"]},
        {"type": "array", "items": {"type": "string"}},
        {"type": "integer", "minimum": "low"},
        {"type": "string", "maxLength": -1},
        {"type": "string", "title": "x" * 201},
        {"$ref": "#/x"},
        "text",
    ],
    ids=str,
)
def test_a_field_that_is_no_bounded_primitive_is_refused(field: Any) -> None:
    with pytest.raises(UnsuitableQuestionError):
        form_of("What?", {"type": "object", "properties": {"value": field}})


@pytest.mark.parametrize(
    "text",
    [
        "Your passphrase?",
        "PASS-WORD",
        "access_token",
        "accessToken",
        "Enter the one-time code",
        "CVV",
        "my secret",
    ],
)
def test_a_question_for_a_secret_is_refused(text: str) -> None:
    with pytest.raises(UnsuitableQuestionError, match="secret"):
        form_of(text, {"type": "object", "properties": {}})


@pytest.mark.parametrize(
    "text", ["Shipping address?", "Which pinboard?", "Tokyo or Osaka?", "Key of the song?"]
)
def test_other_words_are_not_taken_for_secrets(text: str) -> None:
    assert form_of(text, {"type": "object", "properties": {}})[0] == text


def test_a_form_keeps_only_known_keywords_with_bounds() -> None:
    field = {"type": "string", "pattern": "(a+)+$", "default": 5, "x-evil": 1, "format": "email"}
    options = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 2}
    tags = {**options, "default": ["b"]}
    _, schema = form_of("What?", {"type": "object", "properties": {"mail": field, "tags": tags}})
    assert schema == {
        "type": "object",
        "properties": {
            "mail": {"type": "string", "maxLength": 4000, "format": "email"},
            "tags": tags,
        },
        "required": [],
        "additionalProperties": False,
    }
