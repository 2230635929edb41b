"""`/stats`, `/audit`, `/registry/diff` and the decisions of policies."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from host_harness import HostFolder, RunningHost, running_host, scripted_provider
from http_client import SESSION, http_client
from jackfield.contract.snapshot import previous, seal
from jackfield_host.endpoints import operations
from jackfield_scripted import ScriptedCall, ScriptedModel


async def quiet(_: ScriptedModel) -> None:
    """A model that never answers."""


def run(
    host_folder: HostFolder,
    test: Callable[[RunningHost, httpx.AsyncClient], Awaitable[None]],
    script: Any = quiet,
    **options: Any,
) -> None:
    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served, **options) as host,
            http_client(host) as ada,
        ):
            await test(host, ada)

    asyncio.run(main())


async def call(ada: httpx.AsyncClient, tool: str, token: str = "", **args: Any) -> dict[str, Any]:
    headers = {"Jackfield-Turn": "all", **({SESSION: token} if token else {})}
    answer = await ada.post(f"/execute/{tool}", json={"arguments": args}, headers=headers)
    result: dict[str, Any] = answer.json()
    return result


def test_statistics_count_calls_errors_and_turns(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        token = (await call(ada, "hst_look", text="a"))["token"]
        for _again in range(3):
            await call(ada, "hst_look", token, text="a")
        await call(ada, "hst_look", token)
        await call(ada, "end_voice_session", token)
        await call(ada, "hst_book", token, text="b")
        stats = (await ada.get("/stats")).json()
        totals = stats["totals"]
        assert totals["calls"] == 7
        assert (totals["loops"], totals["refusals"]) == (2, 1)
        # Two loops, one invalid call, one refusal; a call that waits for confirmation has not failed.
        assert totals["errors"] == 4
        assert totals["tokens"] > 0
        look = next(each for each in stats["tools"] if each["tool"] == "hst_look")
        assert (look["calls"], look["budgetMs"]) == (5, 60000)
        assert look["errors"] == {"LOOP_DETECTED": 2, "VALIDATION": 1}
        assert 0 < look["p50"] <= look["p95"] <= look["p99"]
        assert {"policy": "modes", "decision": "refused", "count": 1} in stats["decisions"]

    run(host_folder, test)


def test_the_history_of_metrics_is_kept(host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "SAMPLE_SECONDS", 0.01)

    async def test(host: RunningHost, ada: httpx.AsyncClient) -> None:
        async with host.client("text"):
            await call(ada, "hst_look", text="a")
            while True:
                samples = (await ada.get("/stats")).json()["samples"]
                if samples and samples[-1]["calls"] == 1 and samples[-1]["open"] == 1:
                    break
        assert samples[0]["calls"] == 0
        assert [each["at"] for each in samples] == sorted(each["at"] for each in samples)

    run(host_folder, test)


def test_the_audit_log_is_returned_and_filtered(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        first = await call(ada, "hst_look", text="a")
        await call(ada, "hst_note", text="b")
        await call(ada, "hst_look")

        async def told(**params: Any) -> list[str]:
            lines = (await ada.get("/audit", params=params)).json()["lines"]
            return [f"{line['tool']} {line['ok']}" for line in lines]

        assert await told() == ["hst_look False", "hst_note True", "hst_look True"]
        assert await told(ok="true", tool="hst_look") == ["hst_look True"]
        assert await told(session=first["session"]) == ["hst_look True"]
        assert await told(tool="nothing") == []
        assert not (await ada.get("/audit", params={"limit": 1})).json()["complete"]
        assert (await ada.get("/audit", params={"ok": "maybe"})).status_code == 400

    run(host_folder, test)


def test_a_host_without_observers_says_what_to_install(host_folder: HostFolder) -> None:
    off = {"observers": {"audit": {"enabled": False}, "metrics": {"enabled": False}}}

    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        for path, code in (("/audit", "no_audit"), ("/stats", "no_metrics")):
            missing = await ada.get(path)
            assert (missing.status_code, missing.json()["error"]["code"]) == (404, code)

    run(host_folder, test, tables=off)


def test_the_response_has_the_decision_of_each_policy(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        fine = await call(ada, "hst_look", text="a")
        assert fine["decisions"]["validation"] == "defaults filled in"
        names = list((await call(ada, "end_voice_session"))["decisions"].items())
        reached = [decision for _, decision in names]
        assert ("modes", "refused") in names
        assert set(reached[reached.index("refused") + 1 :]) == {"not reached"}
        chain = (await ada.get("/registry")).json()["policies"]
        order = [name for name in fine["decisions"] if name in chain]
        assert order == [name for name in chain if name in order]

    run(host_folder, test)


def test_a_session_publishes_the_decision_of_each_policy(host_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_look", {"text": "one"}))
        await model.says("Done.")

    async def test(host: RunningHost, _: httpx.AsyncClient) -> None:
        async with host.client("text") as client:
            await client.say("text", text="hello")
            await client.until_type("turn_complete")
            (decided,) = client.of("tool_decisions")
            (done,) = client.of("tool_complete")
            assert (decided["tool"], decided["callId"]) == ("hst_look", done["callId"])
            assert decided["decisions"]["validation"] == "defaults filled in"
            assert client.got.index(decided) < client.got.index(done)
            assert "id" not in decided, "it is passing, and told to nobody later"

    run(host_folder, test, script)


async def _declined_on_record(ada: httpx.AsyncClient, session: str, call_id: str) -> None:
    lines = (await ada.get("/audit", params={"session": session})).json()["lines"]
    declined, pending = lines
    assert (pending["decisions"]["confirmation"], pending["error"]) == ("pending", "CONFIRMATION_REQUIRED")
    assert declined["decisions"] == {"confirmation": "declined"}
    assert (declined["callId"], pending["callId"]) == (call_id, call_id)
    assert not declined["ok"]
    assert not declined["confirmed"]
    for fact in ("tool", "session", "user", "mode"):
        assert declined[fact] == pending[fact]
    stats = (await ada.get("/stats")).json()
    assert {"policy": "confirmation", "decision": "declined", "count": 1} in stats["decisions"]
    assert (stats["totals"]["calls"], stats["totals"]["errors"]) == (1, 0)


def test_a_declined_call_is_in_the_audit_log(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        asked = await call(ada, "hst_book", text="a table")
        named = {SESSION: asked["token"]}
        path = f"/confirmations/{asked['confirmation']['token']}"
        assert (await ada.post(path, json={"approve": False}, headers=named)).status_code == 200
        await _declined_on_record(ada, asked["session"], asked["callId"])

    run(host_folder, test)


def test_a_call_declined_in_a_session_is_audited_and_published(host_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
        await model.says("It waits for you.")
        await model.hears()
        await model.says("Then not.")

    async def test(host: RunningHost, ada: httpx.AsyncClient) -> None:
        async with host.client("text") as client:
            await client.say("text", text="book")
            await client.until_type("turn_complete")
            (asked,) = client.of("confirmation_required")
            await client.say("decline", token=asked["token"])
            await client.until(lambda: "Then not." in client.said("assistant"))
            told = client.of("tool_decisions")[-1]
            assert (told["callId"], told["decisions"]) == (asked["callId"], {"confirmation": "declined"})
            assert client.session
            await _declined_on_record(ada, client.session["session"], asked["callId"])

    run(host_folder, test, script)


def test_the_registry_diff_covers_the_previous_and_the_next_registry(host_folder: HostFolder) -> None:
    registry = host_folder.path / "tool_registry.json"
    shutil.copy(host_folder.registry, registry)
    own = HostFolder(host_folder.path, registry, host_folder.site)
    now = json.loads(registry.read_text())
    other = {**now, "tools": [each for each in now["tools"] if each["toolId"] != "hst_much"]}
    fewer = seal(other)

    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        alone = {"from": None, "to": now["version"], "waiting": False, "changes": []}
        assert (await ada.get("/registry/diff")).json() == alone
        previous(registry).write_text(json.dumps(fewer.wire))
        told = (await ada.get("/registry/diff")).json()
        assert (told["from"], told["to"], told["waiting"]) == (fewer.version, now["version"], False)
        assert told["changes"] == [{"subject": "hst_much", "what": "tool added, 1.2.3", "bump": None}]

        registry.write_text(json.dumps(fewer.wire))
        told = (await ada.get("/registry/diff")).json()
        assert (told["from"], told["to"], told["waiting"]) == (now["version"], fewer.version, True)
        assert told["changes"] == [{"subject": "hst_much", "what": "tool removed", "bump": None}]

        registry.write_text("{}")
        assert (await ada.get("/registry/diff")).json() == alone

    run(own, test)


def test_the_registry_names_the_distribution_of_everything(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        told = (await ada.get("/registry")).json()
        assert [each["name"] for each in told["chain"]] == told["policies"]
        ours = [each for each in told["plugins"] if each["distribution"] == "jackfield-policies"]
        policies = next(each for each in ours if "policies" in each["offers"])
        assert set(told["policies"]) == set(policies["offers"]["policies"])
        tool = (await ada.get("/tools/hst_look")).json()
        assert (tool["distribution"], tool["distributionVersion"]) == ("hst-hst-look", "1.2.3")
        declared = tool["providerSchemas"]
        assert declared
        assert all("hst_look" in json.dumps(each) for each in declared.values())

    run(host_folder, test)


def test_a_failing_observer_disables_only_the_charts(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def snapshot(self) -> dict[str, Any]:
            raise RuntimeError("no figures today")

    class Other:
        def snapshot(self) -> dict[str, Any]:
            return {"metrics": {"jackfield_calls": [{"tool": "a", "value": 3}]}}

    async def main() -> None:
        trend = operations.MetricsHistory(Broken(), [])
        await trend.run()
        assert "cannot read the metrics" in caplog.text
        assert not trend.samples
        counted = operations.read_metrics(Other())
        assert operations.metric_totals(counted) == {
            **dict.fromkeys(operations.metric_totals({}), 0.0),
            "calls": 3.0,
        }

    asyncio.run(main())
