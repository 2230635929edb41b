"""`POST /execute`, `/confirmations` and `/tasks`: calls of a client, governed like a model's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from signal import SIGTERM
from typing import Any

import httpx
import pytest
from host_harness import HostFolder, HostProcess, RunningHost, running_host, scripted_provider, wait_until
from http_client import SESSION, http_client, stream_events
from jackfield.store import StoreUnavailableError
from jackfield_scripted import ScriptedModel
from jackfield_store_sqlite import SqliteStore


async def quiet(_: ScriptedModel) -> None:
    """A model that never answers."""


@asynccontextmanager
async def serving(
    host_folder: HostFolder, **options: Any
) -> AsyncIterator[tuple[RunningHost, httpx.AsyncClient]]:
    async with (
        scripted_provider(quiet) as served,
        running_host(host_folder, served, **options) as host,
        http_client(host) as ada,
    ):
        yield host, ada


def run(
    host_folder: HostFolder, test: Callable[[RunningHost, httpx.AsyncClient], Awaitable[None]], **options: Any
) -> None:
    async def main() -> None:
        async with serving(host_folder, **options) as (host, ada):
            await test(host, ada)

    asyncio.run(main())


async def call(
    ada: httpx.AsyncClient, tool: str, text: str = "one two", *, key: str = "", token: str = "", **args: Any
) -> httpx.Response:
    headers = {name: value for name, value in (("Idempotency-Key", key), (SESSION, token)) if value}
    body = {"arguments": {"text": text, **args}}
    return await ada.post(f"/execute/{tool}", json=body, headers=headers)


def test_a_later_call_of_a_session_does_not_search_the_store(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cost must not depend on how many sessions there are."""

    async def test(host: RunningHost, ada: httpx.AsyncClient) -> None:
        token = (await call(ada, "hst_facts")).json()["token"]
        searched: list[str] = []
        store = type(host.sessions.runtime.store)
        keys = store.keys

        async def noted(self: Any, prefix: str) -> list[str]:
            searched.append(prefix)
            return await keys(self, prefix)

        with monkeypatch.context() as patched:
            patched.setattr(store, "keys", noted)
            for _ in range(3):
                assert (await call(ada, "hst_facts", token=token)).status_code == 200
        assert [each for each in searched if token.partition(".")[0] in each] == []

    run(host_folder, test)


def test_a_call_that_waits_for_nothing_is_recorded_in_one_transaction_of_the_writer(
    host_folder: HostFolder,
) -> None:
    """Its events and its session are flushed to the disk once, whether or not the session is new."""

    async def test(host: RunningHost, ada: httpx.AsyncClient) -> None:
        token, store = (await call(ada, "hst_facts")).json()["token"], host.sessions.runtime.store
        assert isinstance(store, SqliteStore)
        writer = store._writer
        for given in (token, ""):
            before = writer.transactions
            for _ in range(20):
                assert (await call(ada, "hst_facts", token=given, unknown=True)).status_code == 400
            # A few more, because the store renews its lease from time to time.
            assert writer.transactions - before < 30

    run(host_folder, test)


def test_a_call_whose_new_session_cannot_be_saved_fails(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client must not get the token of a session that is lost."""

    async def away(*_: Any, **__: Any) -> None:
        raise StoreUnavailableError("the store is away")

    async def test(host: RunningHost, ada: httpx.AsyncClient) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(host.sessions.runtime.store, "put", away)
            for tool in ("hst_facts", "hst_note"):
                refused = await call(ada, tool, tool)
                assert refused.status_code == 503
                assert "token" not in refused.json()
            waiting = asyncio.create_task(call(ada, "hst_look", "at this", before="gate"))
            await wait_until(lambda: host_folder.effects("begun at this"))
            host_folder.open_gate("gate")
            assert (await waiting).status_code == 503
        # A tool that writes does not run before its session is saved.
        assert host_folder.effects("begun hst_note") == 0
        token = (await call(ada, "hst_facts")).json()["token"]
        assert (await call(ada, "hst_facts", token=token)).status_code == 200

    run(host_folder, test)


def test_the_new_session_of_a_call_is_saved_while_its_tool_waits(host_folder: HostFolder) -> None:
    """If the host is killed then, the call and its session are known."""

    async def test(host: RunningHost, ada: httpx.AsyncClient) -> None:
        store = host.sessions.runtime.store
        waiting = asyncio.create_task(call(ada, "hst_look", "at this", before="gate"))
        await wait_until(lambda: host_folder.effects("begun at this"))
        saved: list[str] = []
        for _ in range(1000):
            if saved := await store.keys("session/"):
                break
            await asyncio.sleep(0.01)
        async for event in store.follow(f"events/{saved[0].removeprefix('session/')}"):
            assert b"tool_start" in event.value
            break
        host_folder.open_gate("gate")
        result = (await waiting).json()
        assert saved == [f"session/{result['session']}"]
        again = await call(ada, "hst_look", token=result["token"])
        assert again.json()["session"] == result["session"]

    run(host_folder, test)


def test_a_call_notices_that_another_host_has_taken_over_and_ended_the_session(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with (
            scripted_provider(quiet, quiet) as served,
            running_host(host_folder, served) as one,
            running_host(host_folder, served) as two,
            http_client(one) as ada,
        ):
            token = (await call(ada, "hst_facts")).json()["token"]
            for _ in range(2):
                assert (await call(ada, "hst_facts", token=token)).status_code == 200
            async with two.client("text", token=token) as client:
                await client.say("end")
                await client.until_closed()
            ended = await call(ada, "hst_facts", token=token)
            error = ended.json()["error"]
            assert (ended.status_code, error["code"]) == (410, "ended")
            # The advice of the close reason is for the developer of a client and repeats the message.
            assert (error["message"], error.get("suggestion")) == (
                "This session has ended; start a new one.",
                None,
            )

    asyncio.run(main())


def test_a_call_runs_as_its_user_in_a_session_that_later_calls_can_use(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        first = await call(ada, "hst_facts")
        result = first.json()
        facts = result["envelope"]["data"]
        assert first.status_code == 200
        assert (facts["id"], facts["user"], facts["mode"]) == (result["session"], "local", "text")
        assert result["success"]
        assert f'"id":"{facts["id"]}"' in result["output"]
        second = (await call(ada, "hst_facts", token=result["token"])).json()
        assert second["session"] == result["session"]
        assert "token" not in second
        task = await ada.get(f"/tasks/{result['callId']}", headers={SESSION: result["token"]})
        assert (task.json()["state"], task.json()["data"]["user"]) == ("done", "local")
        line = (await host_folder.audited(2))[0]
        assert (line["tool"], line["user"], line["callId"]) == ("hst_facts", "local", result["callId"])

    run(host_folder, test)


STATUSES = [
    ("hst_look", {"text": 7}, 400, "validation"),
    ("hst_spoken", {"text": "a"}, 403, "mode_restricted"),
    ("hst_fails", {"text": "AUTH"}, 403, "auth"),
    ("hst_lok", {"text": "a"}, 404, "not_found"),
    ("hst_fails", {"text": "NOT_FOUND"}, 404, "not_found"),
    ("hst_brief", {"text": "a", "seconds": 9}, 408, "transient"),
    ("hst_fails", {"text": "CONFLICT"}, 409, "conflict"),
    ("hst_fails", {"text": "SESSION_ACTIVE"}, 409, "session_active"),
    ("hst_fails", {"text": "RATE_LIMIT"}, 429, "rate_limit"),
    ("hst_fails", {"text": "BUDGET_EXCEEDED"}, 429, "budget_exceeded"),
    ("hst_fails", {"text": "nonsense"}, 500, "internal"),
    ("hst_refuse", {"text": "a"}, 422, "permanent"),
    ("hst_fails", {"text": "TRANSIENT"}, 503, "transient"),
]


def test_every_error_type_has_its_http_status(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        for tool, arguments, status, code in STATUSES:
            answer = await ada.post(f"/execute/{tool}", json={"arguments": arguments})
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), arguments
            assert answer.json()["envelope"]["ok"] is answer.json()["success"] is False

    run(host_folder, test)


def test_a_rate_limit_says_when_to_retry(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        assert (await call(ada, "hst_rationed")).status_code == 200
        refused = await call(ada, "hst_rationed")
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
        assert refused.json()["error"]["retryAfter"] == 60

    run(host_folder, test)


@pytest.mark.parametrize("key", ["a-key-of-some-length", "short", "temperature-1"])
def test_the_same_key_runs_once_and_returns_the_same_outcome(host_folder: HostFolder, key: str) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        both = await asyncio.gather(*(call(ada, "hst_note", "twice", key=key) for _ in range(2)))
        first, second = (each.json() for each in both)
        assert [each.status_code for each in both] == [200, 200]
        assert first["envelope"] == second["envelope"]
        assert first["session"] == second["session"]
        assert host_folder.effects("done twice") == 1
        other = await call(ada, "hst_note", "other", key=key)
        assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
        assert host_folder.effects("done other") == 0
        token = first.get("token") or second["token"]
        task = (await ada.get(f"/tasks/{key}", headers={SESSION: token})).json()
        assert (task["state"], task["data"]["text"]) == ("done", "twice")

    run(host_folder, test)


def test_a_key_and_a_call_id_that_differ_are_refused(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        body = {"arguments": {"text": "a"}, "call_id": "one-name-of-it"}
        wrong = await ada.post("/execute/hst_note", json=body, headers={"Idempotency-Key": "another-name"})
        assert wrong.status_code == 400
        token = (await call(ada, "hst_look")).json()["token"]
        right = await ada.post("/execute/hst_note", json=body, headers={SESSION: token})
        assert right.json()["callId"] == "one-name-of-it"

    run(host_folder, test)


def test_an_idempotency_key_survives_a_killed_host(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider() as served, HostProcess(host_folder, served) as host:
            async with http_client(host) as ada:
                first = (await call(ada, "hst_note", "once", key="key-of-a-client")).json()
            await host.kill()
            await host.start()
            async with http_client(host) as ada:
                again = (await call(ada, "hst_note", "once", key="key-of-a-client")).json()
                named = await call(ada, "hst_facts", token=first["token"])
            assert again["envelope"] == first["envelope"]
            assert named.json()["session"] == first["session"]
            assert host_folder.effects("done once") == 1

    asyncio.run(main())


@pytest.mark.parametrize("approve", [True, False])
def test_a_call_that_waits_for_confirmation_returns_the_confirmation(
    host_folder: HostFolder, approve: bool
) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        asked = await call(ada, "hst_book", "a table", key="booking-number-1")
        card, token = asked.json()["confirmation"], asked.json()["token"]
        assert (asked.status_code, card["preview"]) == (202, "Book a table?")
        assert card["token"] not in str(asked.json()["envelope"])
        again = await call(ada, "hst_book", "a table", key="booking-number-1", token=token)
        assert again.json()["confirmation"] == card
        unnamed = await call(ada, "hst_book", "a table", key="booking-number-1")
        assert (unnamed.json()["confirmation"], unnamed.json()["token"]) == (card, token)
        assert (await ada.get("/tasks/booking-number-1", headers={SESSION: token})).json()[
            "state"
        ] == "waiting"
        other = (await call(ada, "hst_look")).json()["token"]
        foreign = await ada.post(
            f"/confirmations/{card['token']}", json={"approve": True}, headers={SESSION: other}
        )
        assert foreign.status_code == 404
        decided = await ada.post(
            f"/confirmations/{card['token']}", json={"approve": approve}, headers={SESSION: token}
        )
        assert (decided.status_code, decided.json()["approved"]) == (200, approve)
        assert host_folder.effects("done a table") == approve
        task = (await ada.get("/tasks/booking-number-1", headers={SESSION: token})).json()
        assert task["state"] == decided.json()["state"] == ("done" if approve else "declined")
        used = await ada.post(
            f"/confirmations/{card['token']}", json={"approve": True}, headers={SESSION: token}
        )
        assert used.status_code == (200 if approve else 409)
        assert used.json()["state"] == task["state"]
        repeated = await call(ada, "hst_book", "a table", key="booking-number-1")
        assert repeated.status_code == (200 if approve else 422)
        if approve:
            assert used.json()["envelope"] == decided.json()["envelope"] == repeated.json()["envelope"]
        else:
            assert used.json()["error"]["message"] == "This call has already been declined; it was not run."
            assert repeated.json()["envelope"]["meta"]["state"] == "declined"
        assert host_folder.effects("done a table") == approve

    run(host_folder, test)


def test_a_call_without_a_decision_in_time_is_expired_everywhere(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        asked = (await call(ada, "hst_book", "a table", key="booking-number-1")).json()
        named = {SESSION: asked["token"]}

        async def task() -> dict[str, Any]:
            told: dict[str, Any] = (await ada.get("/tasks/booking-number-1", headers=named)).json()
            return told

        while (late := await task())["state"] == "waiting":  # noqa: ASYNC110 - there is nothing to be told by
            await asyncio.sleep(0.01)
        assert (late["state"], late["error"]["code"]) == ("expired", "expired")
        assert late["endedAt"] == asked["confirmation"]["expiresAt"]
        shown = (await ada.get(f"/sessions/{asked['session']}/transcript")).json()["lines"]
        assert [each["type"] for each in shown if each.get("expired")] == [
            "confirmation_required",
            "tool_error",
        ]
        form = {"format": "markdown"}
        written = (await ada.get(f"/sessions/{asked['session']}/transcript", params=form)).text
        assert "> asked for approval: Book a table? [expired]\n" in written
        assert "> hst_book was not approved in time\n" in written

    run(host_folder, test, tables={"policies": {"confirmation": {"expiry_seconds": 0.2}}})


def test_a_call_in_a_live_session_is_sent_to_its_clients(host_folder: HostFolder) -> None:
    async def test(host: RunningHost, http: httpx.AsyncClient) -> None:
        async with host.client("voice") as ada:
            working = asyncio.create_task(call(http, "hst_tells", key="a-call-in-a-talk", token=ada.token))
            await ada.until_type("tool_progress")
            task = await http.get("/tasks/a-call-in-a-talk", headers={SESSION: ada.token})
            assert (task.json()["state"], task.json()["progress"]["fraction"]) == ("running", 0.5)
            host_folder.open_gate("told")
            assert (await working).json()["envelope"]["data"] == {"told": True}
            done = await ada.until_type("tool_complete")
            assert done["callId"] == "a-call-in-a-talk"
            written = await call(http, "hst_written", token=ada.token)
            assert written.status_code == 403

    run(host_folder, test)


def test_a_call_cannot_use_the_session_of_another_user(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        result = (await call(ada, "hst_facts")).json()
        for token in (f"{result['session']}.guessed", "nonsense", result["session"]):
            assert (await call(ada, "hst_facts", token=token)).status_code == 404
            assert (await ada.get("/tasks/any", headers={SESSION: token})).status_code == 404
            assert (await ada.get("/events", headers={SESSION: token})).status_code == 404
        assert (await ada.get("/tasks/any")).status_code == 400
        assert (await ada.get("/tasks/any", headers={SESSION: result["token"]})).status_code == 404

    run(host_folder, test)


def test_a_call_completes_after_its_client_disconnected(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        token = (await call(ada, "hst_facts")).json()["token"]
        working = asyncio.create_task(
            call(ada, "hst_note", "kept", key="left-alone", token=token, before="gate")
        )
        await wait_until(lambda: host_folder.effects("begun kept"))
        working.cancel()
        host_folder.open_gate("gate")
        async with ada.stream("GET", "/events", headers={SESSION: token}) as response:
            async for each in stream_events(response):
                if each.name == "tool_complete" and each.data["callId"] == "left-alone":
                    break
        assert host_folder.effects("done kept") == 1

    run(host_folder, test)


def test_garbage_collection_of_startup_objects_does_not_delay_calls(host_folder: HostFolder) -> None:
    """The garbage collector does not traverse objects that existed before the first call."""

    async def main() -> None:
        async with (
            scripted_provider() as served,
            HostProcess(host_folder, served) as host,
            http_client(host) as ada,
        ):
            heap = (await call(ada, "hst_heap")).json()["envelope"]["data"]
            assert heap["set_aside"] > 5 * heap["watched"], heap
            assert heap["collecting"], "the collector is off only during the start"

    asyncio.run(main())


def test_a_draining_host_lets_a_call_finish(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            HostProcess(host_folder, served) as host,
            http_client(host) as ada,
        ):
            working = asyncio.create_task(call(ada, "hst_note", "kept", before="gate"))
            await wait_until(lambda: host_folder.effects("begun kept"))
            stopping = asyncio.create_task(host.kill(SIGTERM))
            await wait_until(lambda: "draining: " in host.output.read_text())
            host_folder.open_gate("gate")
            assert (await working).json()["success"]
            assert await stopping == 0

    asyncio.run(main())
