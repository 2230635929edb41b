"""Confirmation over MCP: in a form, on the card, and for clients that cannot ask; and running once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from jackfield.settings import SettingsError
from mcp.client._input_required import InputRequiredRoundsExceededError
from mcp.shared.exceptions import MCPError
from mcp_harness import (
    ACCEPT,
    ERAS,
    INITIALIZE,
    HostProcess,
    McpFolder,
    RunningHost,
    keyed,
    running_host,
    text_of,
)
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
)

each_era = pytest.mark.parametrize("era", ERAS)

TRUSTED = {"trust_clients": True, "console": False}
"""The SDK's client supports both ways of asking; it gets a form if there is no console."""

BOOK = {"text": "a table"}


class Person:
    """The user of a client, who answers its questions."""

    def __init__(self, action: str, approve: bool | None = None) -> None:
        self.asked: list[Any] = []
        self._action = action
        self._approve = approve

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params)
        content = None if self._approve is None else {"approve": self._approve}
        return ElicitResult(action=self._action, content=content)  # type: ignore[arg-type]


class CardUser(Person):
    """A user who opens the card of a call and decides there."""

    def __init__(self, host: RunningHost, *, approve: bool) -> None:
        super().__init__("accept")
        self._host = host
        self._decision = approve
        self.cards: list[dict[str, Any]] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestURLParams)
        self.cards.append(await decide(self._host, params.url, approve=self._decision))
        return await super().__call__(context, params)


async def decide(host: RunningHost, url: str, *, approve: bool, token: str | None = None) -> dict[str, Any]:
    """Decide on a card as the console does; return the card."""
    base, _, path = url.partition("/#/confirmation/")
    assert base == host.url
    async with host.http(token) as http:
        shown = await http.get(f"/mcp/confirmations/{path}")
        assert shown.status_code == 200
        decided = await http.post(f"/mcp/confirmations/{path}", json={"approve": approve})
        assert decided.status_code == 200
        assert decided.json()["approved"] is approve
        card: dict[str, Any] = shown.json()
        return card


@each_era
def test_a_trusted_client_asks_its_user_in_a_form(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        person = Person("accept", approve=True)
        async with (
            running_host(folder, TRUSTED) as host,
            host.client(era, elicitation_callback=person) as client,
        ):
            result = await client.call_tool("mct_book", BOOK)
            assert result.structured_content == {"words": 2, "text": "a table"}
            (question,) = person.asked
            assert isinstance(question, ElicitRequestFormParams)
            assert question.message == "Book a table?"
            assert folder.effects("done a table") == 1

    asyncio.run(run())


@each_era
@pytest.mark.parametrize(("action", "approve"), [("accept", False), ("accept", None), ("decline", None)])
def test_a_declined_call_does_not_run(folder: McpFolder, era: str, action: str, approve: bool | None) -> None:
    async def run() -> None:
        person = Person(action, approve)
        async with (
            running_host(folder, TRUSTED) as host,
            host.client(era, elicitation_callback=person) as client,
        ):
            result = await client.call_tool("mct_book", BOOK)
            assert result.is_error
            assert result.structured_content is not None
            assert result.structured_content["meta"]["state"] == "declined"
            assert folder.effects("begun a table") == 0

    asyncio.run(run())


@each_era
def test_a_dismissed_question_leaves_the_call_waiting(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        person = Person("cancel")
        async with (
            running_host(folder, TRUSTED) as host,
            host.client(era, elicitation_callback=person) as client,
        ):
            result = await client.call_tool("mct_book", BOOK)
            assert result.is_error
            assert result.structured_content is not None
            assert result.structured_content["meta"]["state"] == "waiting"
            assert folder.effects("begun a table") == 0

    asyncio.run(run())


@each_era
@pytest.mark.parametrize("approve", [True, False])
def test_the_user_decides_on_the_card(folder: McpFolder, era: str, approve: bool) -> None:
    async def run() -> None:
        async with running_host(folder) as host:
            user = CardUser(host, approve=approve)
            async with host.client(era, elicitation_callback=user) as client:
                result = await client.call_tool("mct_book", BOOK)
            assert [card["preview"] for card in user.cards] == ["Book a table?"]
            assert user.cards[0]["args"]["text"] == "a table"
            assert result.is_error is not approve
            assert folder.effects("done a table") == int(approve)

    asyncio.run(run())


@each_era
def test_a_client_that_only_says_yes_approves_nothing(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        person = Person("accept", approve=True)
        async with (
            running_host(folder, {"wait_seconds": 0.3}) as host,
            host.client(era, elicitation_callback=person, input_required_max_rounds=2) as client,
        ):
            if era == "legacy":
                result = await client.call_tool("mct_book", BOOK)
                assert result.is_error
            else:
                with pytest.raises(InputRequiredRoundsExceededError):
                    await client.call_tool("mct_book", BOOK)
            assert folder.effects("begun a table") == 0

    asyncio.run(run())


@each_era
@pytest.mark.parametrize("trusts", [False, True])
def test_a_client_that_cannot_ask_gets_the_address_of_the_card(
    folder: McpFolder, era: str, trusts: bool
) -> None:
    async def run() -> None:
        async with running_host(folder, {"trust_clients": trusts}) as host, host.client(era) as client:
            meta = keyed("book-1")
            result = await client.call_tool("mct_book", BOOK, meta=meta)
            assert result.is_error
            assert result.structured_content is not None
            assert result.structured_content["error"]["type"] == "CONFIRMATION_REQUIRED"
            link = text_of(result, 1).split()[-1]
            await decide(host, link, approve=True)
            done = await client.call_tool("mct_book", BOOK, meta=meta)
            assert done.structured_content == {"words": 2, "text": "a table"}
            again = await client.call_tool("mct_book", BOOK, meta=meta)
            assert again.meta == done.meta
            assert folder.effects("done a table") == 1

    asyncio.run(run())


@each_era
def test_a_client_that_is_not_trusted_is_not_asked_in_a_form(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        person = Person("accept", approve=True)
        async with (
            running_host(folder, {"console": False}) as host,
            host.client(era, elicitation_callback=person) as client,
        ):
            result = await client.call_tool("mct_book", BOOK)
            assert result.is_error
            assert person.asked == []
            assert folder.effects("begun a table") == 0

    asyncio.run(run())


def test_the_address_of_a_card_holds_no_secret(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client("legacy") as client:
            result = await client.call_tool("mct_book", BOOK)
            session, confirmation = text_of(result, 1).split()[-1].rsplit("/", 2)[1:]
            assert len(session) == len(confirmation) == 32
            assert host.host is not None
            pending = await host.host.sessions.runtime.confirmations.for_session(session)
            text = str(result)
            assert all(each.token_hash not in text for each in pending)
            async with host.http() as http:
                for path in (f"{session}/{'0' * 32}", f"{'0' * 32}/{confirmation}", "x/y"):
                    shown = await http.get(f"/mcp/confirmations/{path}")
                    assert shown.status_code == 404
                bad = await http.post(f"/mcp/confirmations/{session}/{confirmation}", json={"approve": "yes"})
                assert bad.status_code == 400
            assert folder.effects("begun a table") == 0

    asyncio.run(run())


def test_a_replayed_answer_gets_the_first_result(folder: McpFolder) -> None:
    async def run() -> None:
        async with (
            running_host(folder, TRUSTED) as host,
            host.client(ERAS[1], elicitation_callback=Person("accept", approve=True)) as client,
        ):
            call = client.session.call_tool
            first = await call("mct_book", BOOK, allow_input_required=True)
            assert isinstance(first, InputRequiredResult)
            answer: Any = {"confirm": ElicitResult(action="accept", content={"approve": True})}
            state = first.request_state
            given: dict[str, Any] = {"input_responses": answer, "request_state": state}
            results = await asyncio.gather(*(call("mct_book", BOOK, **given) for _ in range(5)))
            refusal: Any = {"confirm": ElicitResult(action="decline")}
            late = await call("mct_book", BOOK, input_responses=refusal, request_state=state)
            assert len({str(each) for each in [*results, late]}) == 1
            assert isinstance(late, CallToolResult)
            assert late.structured_content == {"words": 2, "text": "a table"}
            assert folder.effects("done a table") == 1
            for arguments, changed in (
                ({"text": "the whole house"}, state),
                (BOOK, f"{state}x"),
                (BOOK, "nonsense"),
            ):
                with pytest.raises(MCPError) as caught:
                    await call("mct_book", arguments, input_responses=answer, request_state=changed)
                assert caught.value.code == INVALID_PARAMS
            assert folder.effects("begun the whole house") == 0

    asyncio.run(run())


def test_the_reply_to_a_question_may_reach_another_host(folder: McpFolder) -> None:
    async def run() -> None:
        async with (
            running_host(folder, TRUSTED) as one,
            running_host(folder, TRUSTED) as other,
            one.http() as asking,
            other.http() as replying,
        ):
            started = await asking.post("/mcp", json=INITIALIZE, headers=ACCEPT)
            headers = {**ACCEPT, "Mcp-Session-Id": started.headers["mcp-session-id"]}
            call = {"name": "mct_book", "arguments": BOOK}
            request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            async with asking.stream("POST", "/mcp", json=request, headers=headers) as response:
                lines = response.aiter_lines()
                question = await next_message(lines)
                assert question["method"] == "elicitation/create"
                result = {"action": "accept", "content": {"approve": True}}
                reply = {"jsonrpc": "2.0", "id": question["id"], "result": result}
                accepted = await replying.post("/mcp", json=reply, headers=headers)
                assert accepted.status_code == 202
                answer = await next_message(lines)
                assert answer["result"]["structuredContent"]["text"] == "a table"

    asyncio.run(run())


async def next_message(lines: Any) -> dict[str, Any]:
    """Return the next message of a stream."""
    async for line in lines:
        if line.startswith("data: "):
            message: dict[str, Any] = json.loads(line.removeprefix("data: "))
            return message
    raise AssertionError("the stream has ended")


@each_era
def test_a_write_that_was_killed_is_in_doubt_and_one_that_ended_is_replayed(
    folder: McpFolder, era: str
) -> None:
    async def run() -> None:
        async with HostProcess(folder) as host:
            for text, after in (("killed", "never"), ("ended", "")):
                arguments = {"text": text, "after": after}
                meta = keyed(f"book-{text}")
                async with host.client(era) as client:
                    waiting = await client.call_tool("mct_book", arguments, meta=meta)
                link = text_of(waiting, 1).split()[-1]
                approving = asyncio.create_task(decide(host, link, approve=True))
                await folder.until(f"done {text}")
                if after:
                    await host.kill()
                    await asyncio.gather(approving, return_exceptions=True)
                    await host.start()
                else:
                    await approving
                async with host.client(era) as client:
                    again = await client.call_tool("mct_book", arguments, meta=meta)
                assert again.structured_content is not None
                if after:
                    assert again.is_error
                    assert again.structured_content["meta"]["state"] == "in_doubt"
                else:
                    assert again.structured_content == {"words": 1, "text": "ended"}
                assert folder.effects(f"done {text}") == 1

    asyncio.run(run())


def test_a_key_is_for_one_call(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client("legacy") as client:
            meta = keyed("note-1")
            first, same = [await client.call_tool("mct_note", {"text": "one"}, meta=meta) for _ in range(2)]
            assert same.meta == first.meta
            other = await client.call_tool("mct_note", {"text": "two"}, meta=meta)
            assert other.structured_content is not None
            assert other.structured_content["error"]["type"] == "CONFLICT"
            assert folder.effects("done one") == 1
            for key in ("", "a b", "x" * 201, 5):
                with pytest.raises(MCPError) as caught:
                    await client.call_tool("mct_note", {"text": "x"}, meta=keyed(key))
                assert caught.value.code == INVALID_PARAMS

    asyncio.run(run())


@pytest.mark.parametrize("keys", [("x" * 32, "x" * 32, True), ("x" * 32, "y" * 32, False), ("", "", True)])
def test_hosts_with_the_same_key_accept_each_others_questions(
    folder: McpFolder, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, str, bool]
) -> None:
    one_key, other_key, accepted = keys
    monkeypatch.setenv("MCT_ONE", one_key)
    monkeypatch.setenv("MCT_OTHER", other_key)

    def settings(variable: str) -> dict[str, Any]:
        return {**TRUSTED, "key_env": variable} if one_key else TRUSTED

    async def run() -> None:
        person = Person("accept", approve=True)
        async with (
            running_host(folder, settings("MCT_ONE")) as one,
            running_host(folder, settings("MCT_OTHER")) as other,
            one.client(ERAS[1], elicitation_callback=person) as asking,
            other.client(ERAS[1], elicitation_callback=person) as answering,
        ):
            asked = await asking.session.call_tool("mct_book", BOOK, allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            answer: Any = {"confirm": ElicitResult(action="accept", content={"approve": True})}
            given: dict[str, Any] = {"input_responses": answer, "request_state": asked.request_state}
            if accepted:
                done = await answering.session.call_tool("mct_book", BOOK, **given)
                assert done.structured_content == {"words": 2, "text": "a table"}
            else:
                with pytest.raises(MCPError):
                    await answering.session.call_tool("mct_book", BOOK, **given)
            assert folder.effects("done a table") == int(accepted)

    asyncio.run(run())


def test_a_key_that_is_too_short_is_a_fault_of_the_settings(folder: McpFolder) -> None:
    async def run() -> None:
        with pytest.raises(SettingsError, match=r"MCT_SHORT must hold at least 32 characters"):
            async with running_host(folder, {"key_env": "MCT_SHORT"}):
                pass

    asyncio.run(run())


@each_era
def test_a_host_does_not_wait_for_a_user_when_it_stops(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        asked = asyncio.Event()

        async def never(context: Any, params: Any) -> ElicitResult:
            asked.set()
            if era == "legacy":
                await asyncio.Event().wait()
            return ElicitResult(action="accept")

        async with running_host(folder) as host, host.client(era, elicitation_callback=never) as client:
            call = asyncio.create_task(client.call_tool("mct_book", BOOK))
            await asked.wait()
            assert host.host is not None
            host.host.sessions.stopping.set()
            async with asyncio.timeout(10):
                if era == "legacy":
                    result = await call
                    assert result.structured_content is not None
                    assert result.structured_content["meta"]["state"] == "waiting"
                else:
                    with pytest.raises(InputRequiredRoundsExceededError):
                        await call
            assert folder.effects("begun a table") == 0

    asyncio.run(run())
