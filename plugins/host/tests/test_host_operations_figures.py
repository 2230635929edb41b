"""`/stats`, `/audit`, `/registry/diff` and what policies decided."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from asking import NAMED, asking
from hosting import Hosted, Workshop, hosted, provided
from jackfield.contract.snapshot import previous, seal
from jackfield_host.operations import figures
from jackfield_scripted import ScriptedCall, ScriptedModel


async def quiet(_: ScriptedModel) -> None:
    """A model that says nothing."""


def run(
    workshop: Workshop,
    test: Callable[[Hosted, httpx.AsyncClient], Awaitable[None]],
    script: Any = quiet,
    **options: Any,
) -> None:
    async def main() -> None:
        async with (
            provided(script) as served,
            hosted(workshop, served, **options) as host,
            asking(host) as ada,
        ):
            await test(host, ada)

    asyncio.run(main())


async def call(ada: httpx.AsyncClient, tool: str, token: str = "", **args: Any) -> dict[str, Any]:
    headers = {"Jackfield-Turn": "all", **({NAMED: token} if token else {})}
    answer = await ada.post(f"/execute/{tool}", json={"arguments": args}, headers=headers)
    result: dict[str, Any] = answer.json()
    return result


def test_figures_count_what_happened(workshop: Workshop) -> None:
    async def test(_: Hosted, ada: httpx.AsyncClient) -> None:
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
        # Two loops, one mistake, one refusal; what waits for its user has not failed.
        assert totals["errors"] == 4
        assert totals["tokens"] > 0
        look = next(each for each in stats["tools"] if each["tool"] == "hst_look")
        assert (look["calls"], look["budgetMs"]) == (5, 60000)
        assert look["errors"] == {"LOOP_DETECTED": 2, "VALIDATION": 1}
        assert 0 < look["p50"] <= look["p95"] <= look["p99"]
        assert {"policy": "modes", "decision": "refused", "count": 1} in stats["decisions"]

    run(workshop, test)


def test_a_trend_is_remembered_for_those_who_come_later(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "SAMPLE_SECONDS", 0.01)

    async def test(host: Hosted, ada: httpx.AsyncClient) -> None:
        async with host.client("text"):
            await call(ada, "hst_look", text="a")
            while True:
                samples = (await ada.get("/stats")).json()["samples"]
                if samples and samples[-1]["calls"] == 1 and samples[-1]["open"] == 1:
                    break
        assert samples[0]["calls"] == 0
        assert [each["at"] for each in samples] == sorted(each["at"] for each in samples)

    run(workshop, test)


def test_the_audit_is_told_and_narrowed_down(workshop: Workshop) -> None:
    async def test(_: Hosted, ada: httpx.AsyncClient) -> None:
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

    run(workshop, test)


def test_a_host_without_observers_says_what_is_missing(workshop: Workshop) -> None:
    off = {"observers": {"audit": {"enabled": False}, "metrics": {"enabled": False}}}

    async def test(_: Hosted, ada: httpx.AsyncClient) -> None:
        for path, code in (("/audit", "no_audit"), ("/stats", "no_metrics")):
            missing = await ada.get(path)
            assert (missing.status_code, missing.json()["error"]["code"]) == (404, code)

    run(workshop, test, tables=off)


def test_what_each_policy_decided_is_in_the_answer(workshop: Workshop) -> None:
    async def test(_: Hosted, ada: httpx.AsyncClient) -> None:
        fine = await call(ada, "hst_look", text="a")
        assert fine["decisions"]["validation"] == "defaults filled in"
        names = list((await call(ada, "end_voice_session"))["decisions"].items())
        reached = [decision for _, decision in names]
        assert ("modes", "refused") in names
        assert set(reached[reached.index("refused") + 1 :]) == {"not reached"}
        chain = (await ada.get("/registry")).json()["policies"]
        order = [name for name in fine["decisions"] if name in chain]
        assert order == [name for name in chain if name in order]

    run(workshop, test)


def test_what_each_policy_decided_is_told_in_a_conversation(workshop: Workshop) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_look", {"text": "one"}))
        await model.says("Done.")

    async def test(host: Hosted, _: httpx.AsyncClient) -> None:
        async with host.client("text") as client:
            await client.say("text", text="hello")
            await client.until_type("turn_complete")
            (decided,) = client.of("tool_decisions")
            (done,) = client.of("tool_complete")
            assert (decided["tool"], decided["callId"]) == ("hst_look", done["callId"])
            assert decided["decisions"]["validation"] == "defaults filled in"
            assert client.got.index(decided) < client.got.index(done)
            assert "id" not in decided, "it is passing, and told to nobody later"

    run(workshop, test, script)


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


def test_a_declined_call_is_on_record(workshop: Workshop) -> None:
    async def test(_: Hosted, ada: httpx.AsyncClient) -> None:
        asked = await call(ada, "hst_book", text="a table")
        named = {NAMED: asked["token"]}
        path = f"/confirmations/{asked['confirmation']['token']}"
        assert (await ada.post(path, json={"approve": False}, headers=named)).status_code == 200
        await _declined_on_record(ada, asked["session"], asked["callId"])

    run(workshop, test)


def test_a_call_declined_in_a_conversation_is_on_record_and_told(workshop: Workshop) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
        await model.says("It waits for you.")
        await model.hears()
        await model.says("Then not.")

    async def test(host: Hosted, ada: httpx.AsyncClient) -> None:
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

    run(workshop, test, script)


def test_the_difference_to_the_registry_before_and_to_the_one_that_waits(workshop: Workshop) -> None:
    registry = workshop.folder / "tool_registry.json"
    shutil.copy(workshop.registry, registry)
    own = Workshop(workshop.folder, registry, workshop.site)
    now = json.loads(registry.read_text())
    other = {**now, "tools": [each for each in now["tools"] if each["toolId"] != "hst_much"]}
    fewer = seal(other)

    async def test(_: Hosted, ada: httpx.AsyncClient) -> None:
        assert (await ada.get("/registry/diff")).status_code == 404
        previous(registry).write_text(json.dumps(fewer.wire))
        told = (await ada.get("/registry/diff")).json()
        assert (told["from"], told["to"], told["waiting"]) == (fewer.version, now["version"], False)
        assert told["changes"] == [{"subject": "hst_much", "what": "tool added, 1.2.3", "bump": None}]

        registry.write_text(json.dumps(fewer.wire))
        told = (await ada.get("/registry/diff")).json()
        assert (told["from"], told["to"], told["waiting"]) == (now["version"], fewer.version, True)
        assert told["changes"] == [{"subject": "hst_much", "what": "tool removed", "bump": None}]

        registry.write_text("{}")
        assert (await ada.get("/registry/diff")).status_code == 404

    run(own, test)


def test_the_registry_says_where_everything_comes_from(workshop: Workshop) -> None:
    async def test(_: Hosted, ada: httpx.AsyncClient) -> None:
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

    run(workshop, test)


def test_an_observer_that_breaks_takes_the_charts_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def snapshot(self) -> dict[str, Any]:
            raise RuntimeError("no figures today")

    class Other:
        def snapshot(self) -> dict[str, Any]:
            return {"metrics": {"jackfield_calls": [{"tool": "a", "value": 3}]}}

    async def main() -> None:
        trend = figures.Trend(Broken(), [])
        await trend.watch()
        assert "the figures cannot be read" in caplog.text
        assert not trend.samples
        counted = figures.metrics_of(Other())
        assert figures.totals(counted) == {**dict.fromkeys(figures.totals({}), 0.0), "calls": 3.0}

    asyncio.run(main())
