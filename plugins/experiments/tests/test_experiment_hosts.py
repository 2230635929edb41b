"""Experiments on real hosts: arms stick to users and sessions, files are trusted, guards and shadows work."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from experiment_hosts import ExperimentFolder, access, eventually, in_event_loop
from host_harness import RunningHost, running_host, scripted_provider
from http_client import http_client
from jackfield.experiments.experiments import VERSION_KEY
from jackfield.experiments.signed_versions import SignedVersion
from jackfield.settings import SettingsError
from jackfield.signatures.dsse_envelope import envelope_path
from jackfield_cli.commands.signatures import sign, verify
from jackfield_experiments.commands import rollout
from jackfield_scripted import Script, ScriptedCall, ScriptedModel


async def answer(host: RunningHost, headers: dict[str, str], text: str = "a") -> dict[str, Any]:
    """Call the tool as a user, and return the envelope."""
    async with http_client(host, **headers) as client:
        answered = await client.post("/execute/exh_look", json={"arguments": {"text": text}})
        found: dict[str, Any] = answered.json()["envelope"]
        return found


async def report(host: RunningHost, headers: dict[str, str]) -> dict[str, Any]:
    async with http_client(host, **headers) as client:
        found: dict[str, Any] = (await client.get("/experiments")).json()
        return found


async def speed(host: RunningHost, headers: dict[str, str]) -> dict[str, Any]:
    (found,) = (await report(host, headers))["experiments"]
    arms = {each["arm"]: each for each in found["arms"]}
    return {**found, "arms": arms}


async def run(folder: ExperimentFolder, *arguments: str) -> Result:
    """Run `jackfield rollout` while hosts run."""
    config = folder.config(folder.path / "cli.toml")
    return await asyncio.to_thread(CliRunner().invoke, rollout, [*arguments, "--config", str(config)])


def looks_into(seen: list[str]) -> Script:
    """A model that calls the tool for each message; `seen` gets who answered."""

    async def looks(model: ScriptedModel) -> None:
        while True:
            text = (await model.hears()).text
            results = await model.calls(ScriptedCall("exh_look", {"text": text}, id=f"call_{text}"))
            seen.append(results[f"call_{text}"]["data"]["by"])
            await model.says("Done.", pieces=1)

    return looks


@pytest.mark.parametrize(
    ("arm", "expected", "decision", "later"),
    [
        ("fast", "fast", {"state": "aborted"}, "owner"),
        ("control", "owner", {"state": "promoted", "winner": "fast"}, "fast"),
    ],
)
@in_event_loop
async def test_a_session_keeps_its_arm_on_another_host_and_after_a_decision(
    folder: ExperimentFolder, arm: str, expected: str, decision: dict[str, Any], later: str
) -> None:
    user = folder.user_in(arm)
    keys, headers = access(user)
    seen: list[str] = []
    connection = {"additional_headers": headers[user]}
    async with scripted_provider(looks_into(seen)) as served:
        async with (
            running_host(folder, served, keys=keys, name="north") as north,
            running_host(folder, served, keys=keys, name="south") as south,
        ):
            async with north.connected("text", **connection) as client:
                await client.say("start")
                token = (await client.until(lambda: client.session))["token"]
                await client.say("text", text="one")
                await client.until_type("turn_complete")
            # Another session of the user has the same arm on every host.
            for host in (north, south):
                assert (await answer(host, headers[user]))["data"]["by"] == expected
            async with south.connected("text", **connection) as client:
                await client.say("resume", token=token)
                await client.until(lambda: client.session)
                await client.say("text", text="two")
                await client.until(lambda: len(seen) == 2)
        # A decision is for new sessions; the session keeps its arm after a restart too.
        folder.write(2, **decision)
        async with running_host(folder, served, keys=keys) as host:
            assert (await answer(host, headers[user]))["data"]["by"] == later
            async with host.connected("text", **connection) as client:
                await client.say("resume", token=token)
                await client.until(lambda: client.session)
                await client.say("text", text="three")
                await client.until(lambda: len(seen) == 3)
    assert seen == [expected] * 3
    lines = [each for each in await folder.audited(6) if "call_" in (each["callId"] or "")]
    assert [each["experiments"] for each in lines] == [{"speed": arm}] * 3
    assert {each["experimentsVersion"] for each in lines} == {1}


@in_event_loop
async def test_users_outside_of_the_shares_take_no_part(folder: ExperimentFolder) -> None:
    folder.write(variants={"fast": 1}, control=1)
    user = folder.user_in(None)
    keys, headers = access(user)
    async with scripted_provider() as served, running_host(folder, served, keys=keys) as host:
        assert (await answer(host, headers[user]))["data"]["by"] == "owner"
    (line,) = await folder.audited(1)
    assert "experiments" not in line


@in_event_loop
async def test_figures_of_both_hosts_are_reported_for_each_arm(folder: ExperimentFolder) -> None:
    fast, control = folder.user_in("fast"), folder.user_in("control")
    keys, headers = access(fast, control, roles=("operator",))
    async with (
        scripted_provider() as served,
        running_host(folder, served, keys=keys, name="north") as north,
        running_host(folder, served, keys=keys, name="south") as south,
    ):
        for host in (north, south):
            for _ in range(2):
                await answer(host, headers[fast])
            await answer(host, headers[control])

        async def complete() -> bool:
            arms = (await speed(north, headers[fast]))["arms"]
            return [arms[each]["calls"] for each in ("fast", "control")] == [4, 2]

        await eventually(complete)
        found = await speed(south, headers[fast])
        assert found["arms"]["fast"]["errorPercent"] == 0
        assert found["arms"]["fast"]["latencyMs"]["p95"] > 0
        assert found["comparisons"][0]["sentence"].startswith("It is too early to compare fast with control")
        async with http_client(north, **headers[fast]) as client:
            metrics = (await client.get("/metrics")).text
            stats = (await client.get("/stats")).json()["tools"]
        assert 'jackfield_calls_total{experiment="speed",tool="exh_look",variant="fast"} 2.0' in metrics
        assert 'jackfield_calls_total{experiment="speed",tool="exh_look"} 1.0' in metrics
        assert {(each["tool"], each.get("variant")) for each in stats} == {
            ("exh_look", "fast"),
            ("exh_look", None),
        }
    # The figures outlive the hosts.
    shown = await run(folder, "status", "--json")
    assert shown.exit_code == 0, shown.output
    (found,) = json.loads(shown.stdout)["experiments"]
    assert {each["arm"]: each["calls"] for each in found["arms"]} == {"fast": 4, "control": 2}
    assert "It is too early" in (await run(folder, "status", "speed")).output


@in_event_loop
async def test_the_guard_aborts_on_all_hosts(
    folder: ExperimentFolder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    folder.write(variants={"broken": 50}, guard={"min_calls": 6, "max_error_percent": 50})
    user = folder.user_in("broken")
    keys, headers = access(user, roles=("operator",))
    async with (
        scripted_provider() as served,
        running_host(folder, served, keys=keys, name="north") as north,
        running_host(folder, served, keys=keys, name="south") as south,
    ):
        # Neither host has enough calls of its own.
        for host in (north, south):
            for _ in range(3):
                assert (await answer(host, headers[user]))["error"]["type"] == "INTERNAL"

        async def recovered(host: RunningHost) -> bool:
            return bool((await answer(host, headers[user])).get("ok"))

        for host in (north, south):
            await eventually(lambda host=host: recovered(host))  # type: ignore[misc]
            found = await speed(host, headers[user])
            assert found["state"] == "aborted"
            assert "100.0 % of" in found["reason"]
            assert found["abortedBy"]["arm"] == "broken"
            async with http_client(host, **headers[user]) as client:
                metrics = (await client.get("/metrics")).text
            assert 'jackfield_experiment_aborted{experiment="speed",variant="broken"} 1.0' in metrics
    assert "experiment speed was aborted by the guard on host" in caplog.text
    assert "aborted by the guard on host" in (await run(folder, "status")).output
    # A host that starts later does not begin again.
    async with scripted_provider() as served, running_host(folder, served, keys=keys) as host:
        assert (await answer(host, headers[user]))["data"]["by"] == "owner"


def alter(folder: ExperimentFolder) -> None:
    text = folder.experiments.read_text().replace('"fast": 50', '"fast": 49')
    folder.experiments.write_text(text)


def unsign(folder: ExperimentFolder) -> None:
    Path(f"{folder.experiments}.dsse").unlink()


@pytest.mark.parametrize(
    ("change", "problem"),
    [(alter, "is not the one that was signed"), (unsign, "the experiments are not signed")],
)
@in_event_loop
async def test_production_does_not_start_with_experiments_that_nobody_trusted_signed(
    folder: ExperimentFolder, change: Any, problem: str
) -> None:
    production = folder.in_production()
    change(production)
    async with scripted_provider() as served:
        with pytest.raises(SettingsError, match=problem):
            async with running_host(production, served):
                raise AssertionError


@in_event_loop
async def test_a_running_host_keeps_its_version_if_the_next_one_may_not_be_used(
    folder: ExperimentFolder,
) -> None:
    folder.write(5)
    production = folder.in_production()
    user = folder.user_in("fast")
    keys, headers = access(user, roles=("operator",))
    async with scripted_provider() as served, running_host(production, served, keys=keys) as host:
        experiments = host.sessions.runtime.experiments
        assert experiments

        async def refused(problem: str) -> bool:
            return problem in ((await report(host, headers[user]))["problem"] or "")

        aborted: dict[str, Any] = {"state": "aborted"}
        for version, signed, problem in (
            (6, False, "is not the one that was signed"),
            (4, True, "version 4 is older than version 5"),
            (5, True, "version 5 is in effect with different content"),
        ):
            folder.write(version, signed=signed, **aborted)
            await eventually(lambda problem=problem: refused(problem))  # type: ignore[misc]
            assert experiments.current.version == 5
            assert (await answer(host, headers[user]))["data"]["by"] == "fast"
        folder.write(7, signed=True, state="aborted")

        async def changed() -> bool:
            return bool((await answer(host, headers[user]))["data"]["by"] == "owner")

        await eventually(changed)
        found = await report(host, headers[user])
        assert (found["version"], found["problem"]) == (7, None)


@in_event_loop
async def test_a_promotion_reaches_hosts_whose_own_file_is_older(folder: ExperimentFolder) -> None:
    north_folder = folder.in_production()
    south_folder = replace(north_folder, file="south.json")
    north_folder.copy_experiments(south_folder)
    user = folder.user_in("control")
    keys, headers = access(user, roles=("operator",))
    async with scripted_provider() as served:
        async with running_host(south_folder, served, keys=keys) as south:
            assert (await answer(south, headers[user]))["data"]["by"] == "owner"
            unsigned = await run(north_folder, "promote", "speed")
            assert "give --key or --public-key" in unsigned.output
            promoted = await run(
                north_folder, "promote", "speed", "--reason", "faster", "--key", str(folder.key)
            )
            assert promoted.exit_code == 0, promoted.output
            assert "version 2; speed is promoted (fast)" in promoted.output

            async def changed() -> bool:
                return bool((await answer(south, headers[user]))["data"]["by"] == "fast")

            await eventually(changed)
        # Its own file is still version 1, which is refused.
        async with running_host(south_folder, served, keys=keys) as south:
            assert (await answer(south, headers[user]))["data"]["by"] == "fast"
            found = await report(south, headers[user])
            assert found["version"] == 2
            assert "version 1 is older than version 2" in found["problem"]
            assert found["experiments"][0]["state"] == "promoted"
        aborted = await run(south_folder, "abort", "speed", "--key", str(folder.key))
        assert "version 3; speed is aborted" in aborted.output
        async with running_host(north_folder, served, keys=keys) as north:
            assert (await answer(north, headers[user]))["data"]["by"] == "owner"


@in_event_loop
async def test_a_forged_version_in_the_store_is_ignored(folder: ExperimentFolder) -> None:
    production = folder.in_production()
    user = folder.user_in("control")
    keys, headers = access(user)
    async with scripted_provider() as served, running_host(production, served, keys=keys) as host:
        store = host.sessions.runtime.store
        original = await store.get(VERSION_KEY)
        assert original
        signed = SignedVersion.from_wire(original)
        forged = signed.data.replace(b'"version": 1', b'"version": 9')
        await store.put(VERSION_KEY, signed._replace(data=forged).to_wire())

        async def restored() -> bool:
            return await store.get(VERSION_KEY) == original

        await eventually(restored)
        assert (await answer(host, headers[user]))["data"]["by"] == "owner"


@in_event_loop
async def test_rollout_refuses_what_does_not_exist(folder: ExperimentFolder) -> None:
    unknown = await run(folder, "abort", "other")
    assert "there is no experiment 'other'; known experiments: speed" in unknown.output
    assert "has no variant 'slow'" in (await run(folder, "promote", "speed", "slow")).output
    folder.write(shadow=True, control=0)
    assert (
        "is a shadow experiment, so no session uses its variant"
        in (await run(folder, "promote", "speed")).output
    )


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"tool": "exh_nowhere"}, "there is no tool 'exh_nowhere'"),
        ({"variants": {"fsat": 50}}, "exh_look has no variant 'fsat'"),
        ({"tool": "exh_note", "shadow": True, "control": 0}, "only a tool that reads can be shadowed"),
    ],
)
@in_event_loop
async def test_experiments_that_do_not_fit_the_registry_stop_the_start(
    folder: ExperimentFolder, fields: dict[str, Any], fault: str
) -> None:
    folder.write(**fields)
    async with scripted_provider() as served:
        with pytest.raises(SettingsError) as error:
            async with running_host(folder, served):
                raise AssertionError
    assert fault in str(error.value)


def shadowed(folder: ExperimentFolder, variant: str) -> tuple[str, dict[str, Any], dict[str, dict[str, str]]]:
    folder.write(variants={variant: 100}, control=0, shadow=True)
    return "ada", *access("ada", roles=("operator",))


@pytest.mark.parametrize(
    ("variant", "outcome", "differing"),
    [("copy", "same", []), ("fast", "different", ["by"]), ("broken", "failed", [])],
)
@in_event_loop
async def test_a_shadow_is_compared_and_never_answers(
    folder: ExperimentFolder, variant: str, outcome: str, differing: list[str]
) -> None:
    user, keys, headers = shadowed(folder, variant)
    async with scripted_provider() as served, running_host(folder, served, keys=keys) as host:
        answered = await answer(host, headers[user])
        assert answered["data"]["by"] == "owner"
        assert "variant" not in answered["meta"]

        async def compared() -> bool:
            arms = (await speed(host, headers[user]))["arms"]
            return bool(arms[variant]["outcomes"])

        await eventually(compared)
        arms = (await speed(host, headers[user]))["arms"]
        assert arms[variant]["outcomes"] == {outcome: 1}
        assert arms["control"]["calls"] == arms[variant]["calls"] == 1
        async with http_client(host, **headers[user]) as client:
            metrics = (await client.get("/metrics")).text
        labels = f'experiment="speed",outcome="{outcome}",tool="exh_look",variant="{variant}"'
        assert f"jackfield_shadow_comparisons_total{{{labels}}} 1.0" in metrics
        # A shadow is not a call: it counts nowhere else.
        assert 'jackfield_calls_total{experiment="speed",tool="exh_look"} 1.0' in metrics
    (line,) = [each for each in await folder.audited(2) if each["event"] == "shadow"]
    assert (line["outcome"], line["variant"], line["differing"]) == (outcome, variant, differing)


@in_event_loop
async def test_a_slow_shadow_delays_nothing_and_too_many_are_skipped(folder: ExperimentFolder) -> None:
    user, keys, headers = shadowed(folder, "slow")
    async with scripted_provider() as served, running_host(folder, served, keys=keys) as host:
        # The shadows wait for a gate that opens after all answers.
        for _ in range(10):
            assert (await answer(host, headers[user]))["data"]["by"] == "owner"
        (folder.path / "gate").touch()

        async def compared() -> bool:
            outcomes = (await speed(host, headers[user]))["arms"]["slow"]["outcomes"]
            return bool(sum(outcomes.values()) == 10)

        await eventually(compared)
        outcomes = (await speed(host, headers[user]))["arms"]["slow"]["outcomes"]
        assert outcomes == {"skipped": 2, "different": 8}


@in_event_loop
async def test_a_shadow_has_no_effects(folder: ExperimentFolder) -> None:
    user, keys, headers = shadowed(folder, "active")
    async with scripted_provider() as served, running_host(folder, served, keys=keys) as host:
        answered = await answer(host, headers[user])
        assert answered["intents"] == []

        async def compared() -> bool:
            return bool((await speed(host, headers[user]))["arms"]["active"]["outcomes"])

        await eventually(compared)
        outcomes = (await speed(host, headers[user]))["arms"]["active"]["outcomes"]
    assert outcomes == {"same": 1}
    assert (folder.path / "tried").read_text() == "message question call key"
    assert not (folder.path / "noted").exists()
    lines = await folder.audited(2)
    assert not any("notes" in each for each in lines)
    assert sum(each["event"] == "call" for each in lines) == 1


def test_jackfield_sign_and_verify_work_on_the_experiments(folder: ExperimentFolder) -> None:
    config = ("--config", str(folder.config(folder.path / "cli.toml")))
    public = str(folder.site / "alice.pub.pem")
    unsigned = CliRunner().invoke(verify, ["--experiments", "--key", public, *config])
    assert "the experiments are not signed" in unsigned.output
    signed = CliRunner().invoke(sign, ["--experiments", "--key", str(folder.key), *config])
    assert "alice signed version 1 of the experiments" in signed.output
    assert CliRunner().invoke(verify, ["--experiments", "--key", public, *config]).exit_code == 0
    again = CliRunner().invoke(sign, ["--experiments", "--key", str(folder.key), *config])
    assert "alice has signed version 1 already" in again.output
    alter(folder)
    altered = CliRunner().invoke(verify, ["--experiments", "--key", public, *config])
    assert altered.exit_code == 1
    assert "do not use these experiments" in altered.output


def test_the_signature_of_a_registry_does_not_count_for_experiments(folder: ExperimentFolder) -> None:
    registry = envelope_path(folder.registry).read_bytes()
    envelope_path(folder.experiments).write_bytes(registry)
    config = ("--config", str(folder.config(folder.path / "cli.toml")))
    checked = CliRunner().invoke(
        verify, ["--experiments", "--key", str(folder.site / "alice.pub.pem"), *config]
    )
    assert checked.exit_code == 1
    assert "the signed statement is about something else" in checked.output
