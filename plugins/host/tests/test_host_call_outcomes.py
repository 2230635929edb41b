"""Responses about calls that were approved, killed, paused and repeated agree with what happened."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from host_harness import HostFolder, HostProcess, Provider, running_host, scripted_provider, wait_until
from http_client import SESSION, http_client, stream_events
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_testkit.command_server import start_command


async def quiet(_: ScriptedModel) -> None:
    """A model that never answers."""


async def execute(
    client: httpx.AsyncClient, tool: str, key: str, token: str = "", turn: str = "", **args: Any
) -> httpx.Response:
    headers = {"Idempotency-Key": key, SESSION: token, "Jackfield-Turn": turn}
    return await client.post(
        f"/execute/{tool}",
        json={"arguments": {"text": "a table", **args}},
        headers={name: value for name, value in headers.items() if value},
    )


async def approve(client: httpx.AsyncClient, asked: dict[str, Any], decision: bool = True) -> httpx.Response:
    return await client.post(
        f"/confirmations/{asked['confirmation']['token']}",
        json={"approve": decision},
        headers={SESSION: asked["token"]},
    )


async def events_of(client: httpx.AsyncClient, token: str, last: str) -> list[dict[str, Any]]:
    """Return the events from the first up to the first one of this type and state."""
    seen = []
    async with client.stream("GET", "/events", headers={SESSION: token, "Last-Event-ID": "0"}) as response:
        async for each in stream_events(response):
            if each.id:
                seen.append(each.data)
            if (each.data.get("state") or each.name) == last:
                return seen
    raise AssertionError(f"no {last} among {seen}")


@asynccontextmanager
async def killed_in_an_approved_call(
    host_folder: HostFolder, served: Provider
) -> AsyncIterator[tuple[HostProcess, dict[str, Any]]]:
    """Start a host again that was killed after the effect of an approved call."""
    async with HostProcess(host_folder, served) as host:
        async with http_client(host) as client:
            asked = (await execute(client, "hst_book", "booking-number-1", after="never")).json()
            approving = asyncio.create_task(approve(client, asked))
            await wait_until(lambda: host_folder.effects("done a table"))
            await host.kill()
            with pytest.raises(httpx.HTTPError):
                await approving
        await host.start()
        yield host, asked


def test_an_approved_call_whose_host_died_is_in_doubt_everywhere(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(quiet) as served,
            killed_in_an_approved_call(host_folder, served) as (host, asked),
            http_client(host) as client,
        ):
            named = {SESSION: asked["token"]}
            task = (await client.get("/tasks/booking-number-1", headers=named)).json()
            assert task["state"] == "in_doubt"
            assert "may or may not have taken effect" in task["error"]["message"]

            again = await approve(client, asked)
            assert (again.status_code, again.json()["state"]) == (200, "in_doubt")
            assert again.json()["envelope"]["error"]["partialSideEffects"] is True

            for token in ("", asked["token"]):
                repeated = await execute(client, "hst_book", "booking-number-1", token, after="never")
                assert repeated.status_code == 500
                assert repeated.json()["envelope"]["meta"]["state"] == "in_doubt"

            declined = await approve(client, asked, decision=False)
            assert (declined.status_code, declined.json()["state"]) == (409, "in_doubt")
            told_there = await events_of(client, asked["token"], "in_doubt")
            assert told_there[-1]["type"] == "tool_error"

            decisions = [line["decisions"]["duplicates"] for line in await host_folder.audited(2)]
            assert "in doubt" in decisions
            assert host_folder.effects("done a table") == 1

    asyncio.run(main())


def test_a_resumed_session_reports_the_doubt_and_its_settlement(host_folder: HostFolder) -> None:
    heard: list[str] = []

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_book", {"text": "a table", "after": "never"}))
        await model.says("It waits for you.")
        await model.hears()

    async def after_the_restart(model: ScriptedModel) -> None:
        for words in ("It is not known whether it was booked.", "It was booked."):
            await model.hears()
            heard.append(str(model.received))
            await model.says(words)

    async def main() -> None:
        async with (
            scripted_provider(script, after_the_restart) as served,
            HostProcess(host_folder, served) as host,
        ):
            async with host.client("text") as ada:
                await ada.say("text", text="book a table")
                card = await ada.until_type("confirmation_required")
                await ada.until_type("turn_complete")
                await ada.say("approve", token=card["token"])
                await wait_until(lambda: host_folder.effects("done a table"))
                await host.kill()
            await host.start()
            async with host.client("text", token=ada.token) as back, http_client(host) as client:
                doubt = await back.until(
                    lambda: next(
                        (each for each in back.of("tool_error") if each.get("state") == "in_doubt"), None
                    )
                )
                assert doubt["callId"] == card["callId"]
                await back.until(lambda: "not known" in " ".join(back.said("assistant")))
                state = (await client.get(f"/tasks/{card['callId']}", headers={SESSION: ada.token})).json()
                assert state["state"] == "in_doubt"

                settled = await settle(host_folder, host, ran=True)
                assert "it ran" in settled
                complete = await back.until_type("tool_complete")
                assert complete["callId"] == card["callId"]
                await back.until(lambda: "It was booked." in back.said("assistant"))
                state = (await client.get(f"/tasks/{card['callId']}", headers={SESSION: ada.token})).json()
                assert state["state"] == "done"
                await back.say("approve", token=card["token"])
            assert host_folder.effects("done a table") == 1

    asyncio.run(main())
    assert any("not known whether" in each for each in heard)


async def settle(host_folder: HostFolder, host: HostProcess, *, ran: bool) -> str:
    """Settle the one call in doubt from the command line."""
    import json

    config = str(host_folder.path / f"host-{host.port}.toml")

    async def jackfield(*arguments: str) -> str:
        process = await start_command(
            ["calls", *arguments, "--config", config],
            cwd=host_folder.path, env={**os.environ, "PYTHONPATH": str(host_folder.site)},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return out.decode()

    (doubtful,) = json.loads(await jackfield("list", "--in-doubt", "--json"))
    assert doubtful["tool_id"] == "hst_book"
    return await jackfield("settle", doubtful["key"], "--ran" if ran else "--not-run")


@pytest.mark.parametrize("ran", [True, False])
def test_a_settled_call_is_reported_to_every_client(host_folder: HostFolder, ran: bool) -> None:
    async def main() -> None:
        async with (
            scripted_provider(quiet) as served,
            killed_in_an_approved_call(host_folder, served) as (host, asked),
            http_client(host) as client,
        ):
            await settle(host_folder, host, ran=ran)
            expected = "done" if ran else "never_run"
            task = (await client.get("/tasks/booking-number-1", headers={SESSION: asked["token"]})).json()
            again = (await approve(client, asked)).json()
            repeated = (await execute(client, "hst_book", "booking-number-1", after="never")).json()
            assert task["state"] == again["state"] == expected
            assert repeated["envelope"] == again["envelope"]
            assert repeated["envelope"]["ok"] is ran
            assert repeated["envelope"]["meta"]["settled"]["ran"] is ran
            assert host_folder.effects("done a table") == 1

    asyncio.run(main())


async def note(client: httpx.AsyncClient, n: int) -> httpx.Response:
    return await execute(client, "hst_note", f"a-key-number-{n}", text=str(n), seconds=0.2)


def test_a_host_that_pauses_beyond_its_lease_has_one_effect_and_one_outcome(host_folder: HostFolder) -> None:
    async def main() -> None:
        host_folder.store_settings["lease"] = 1.0
        async with (
            scripted_provider(quiet, quiet) as served,
            HostProcess(host_folder, served) as paused,
            HostProcess(host_folder, served) as other,
            http_client(paused) as there,
            http_client(other) as here,
        ):
            calls = [asyncio.create_task(note(there, n)) for n in range(20)]
            await wait_until(lambda: host_folder.effects("begun 10"))
            os.kill(paused.pid, signal.SIGSTOP)
            await asyncio.sleep(1.5)
            # If it stopped during a transaction, the store is locked for all hosts: 503.
            meanwhile = await asyncio.gather(*(note(here, n) for n in range(20)))
            os.kill(paused.pid, signal.SIGCONT)
            answers = [(await each).json() for each in calls]
            for n, answer in enumerate(answers):
                assert host_folder.effects(f"done {n}") <= 1
                final = (
                    await execute(here, "hst_note", f"a-key-number-{n}", text=str(n), seconds=0.2)
                ).json()
                # The paused host recorded its result, and every client gets these bytes.
                assert final["envelope"] == answer["envelope"]
                assert final["envelope"]["ok"] is (host_folder.effects(f"done {n}") == 1)
                if meanwhile[n].status_code != 503:
                    first = meanwhile[n].json()
                    settled = first["envelope"] == final["envelope"]
                    assert settled or first["envelope"]["meta"]["state"] in ("in_doubt", "running")
                    assert first["token"] == final["token"] == answer["token"]

    asyncio.run(main())


def test_concurrent_requests_with_one_key_on_two_hosts_get_one_session_and_one_confirmation(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with (
            scripted_provider(quiet, quiet) as served,
            HostProcess(host_folder, served) as one,
            HostProcess(host_folder, served) as two,
            http_client(one) as at_one,
            http_client(two) as at_two,
        ):
            deliveries = [
                execute(client, "hst_book", "a-key-of-a-client")
                for client in (at_one, at_two)
                for _ in range(15)
            ]
            answers = [each.json() for each in await asyncio.gather(*deliveries)]
            assert {each["token"] for each in answers} == {answers[0]["token"]}
            cards = [each["confirmation"] for each in answers]
            assert all(card == cards[0] for card in cards)
            assert all(each["envelope"]["error"] == answers[0]["envelope"]["error"] for each in answers)
            approved = [(await approve(client, answers[-1])).json() for client in (at_two, at_one)]
            assert approved[0]["envelope"] == approved[1]["envelope"]
            assert host_folder.effects("done a table") == 1

    asyncio.run(main())


def test_every_call_is_a_turn_of_its_own_unless_the_client_groups_calls(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(quiet) as served,
            running_host(host_folder, served) as host,
            http_client(host) as client,
        ):
            token = (await execute(client, "hst_look", "first-of-them")).json()["token"]
            for n in range(12):
                alone = await execute(client, "hst_look", f"call-number-{n}", token, text=str(n))
                assert alone.status_code == 200, alone.text
            grouped = [
                await execute(client, "hst_look", f"grouped-number-{n}", token, "one", text="again")
                for n in range(4)
            ]
            assert [each.status_code for each in grouped] == [200, 200, 429, 429]
            assert grouped[-1].json()["error"]["code"] == "loop_detected"
            another = await execute(client, "hst_look", "another-turn", token, "two", text="again")
            assert another.status_code == 200
            bad = await execute(client, "hst_look", "with-a-bad-name", token, "x" * 201)
            assert bad.status_code == 400

    asyncio.run(main())


def test_a_clients_call_does_not_use_up_the_models_turn_budget(host_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("Go on.")
        await model.hears()
        await model.calls(ScriptedCall("hst_look", {"text": "same"}))
        await model.says("Found.")

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            http_client(host) as client,
            host.client("text") as ada,
        ):
            await ada.say("text", text="hello")
            await ada.until_type("turn_complete")
            for n in range(6):
                found = await execute(client, "hst_look", f"call-number-{n}", ada.token, text="same")
                assert found.status_code == 200
            await ada.say("text", text="look")
            await ada.until(lambda: "Found." in ada.said("assistant"))
            assert not ada.of("tool_error")

    asyncio.run(main())
