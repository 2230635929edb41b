"""Provider errors of an agent reach the caller as a message and an error type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_deployment import agent_deployment, run
from jackfield import ToolError
from jackfield.store import StoreUnavailableError
from jackfield.transport.protocol import TransportError
from jackfield.transport.provider_errors import PROVIDER_ERRORS
from jackfield_agents import agent, tool_errors
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel
from jackfield_testkit.site_packages import SitePackages


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAB_KEY", "k")
    monkeypatch.setattr(agent, "PAUSES", (0.01, 0.01))


async def reports(model: ScriptedModel) -> None:
    await model.hears()
    await model.says("It was found.")


def test_a_temporary_provider_error_is_retried(site: SitePackages, tmp_path: Path) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("fab_look", {"text": "rooms"}))
        await model.fails("server_error", "a fault of ours")
        await model.hears()
        await model.says("It was found.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script, reports) as there:
            assert (await there.call_task())["data"]["report"] == "It was found."

    run(act)


def test_a_lasting_provider_error_is_transient_and_reports_the_findings(
    site: SitePackages, tmp_path: Path
) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("fab_look", {"text": "rooms"}))
        for _ in range(3):
            await model.fails("server_error", "secret detail of the provider")
            await model.hears()

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script) as there:
            envelope = await there.call_task()
            error = envelope["error"]
            assert error["type"] == "TRANSIENT"
            assert error["message"] == "The agent could not finish: its model's provider failed."
            assert error["details"] == {
                "steps": 1,
                "tools": ["fab_look"],
                "soFar": "Nothing was written yet. What had been found: About rooms",
            }
            assert "secret" not in str(envelope)
            assert there.watcher.ended == [there.watcher.opened[1]]

    run(act)


@pytest.mark.parametrize(
    ("refusal", "kind", "words"),
    [
        (Refusal(401, "invalid_api_key", "no"), "PERMANENT", "rejected this deployment's key"),
        (Refusal(429, "insufficient_quota", "no"), "PERMANENT", "deployment's provider quota is used up"),
        (Refusal(400, "context_length_exceeded", "no"), "PERMANENT", "too long for its model"),
    ],
)
def test_an_unrecoverable_provider_error_is_permanent(
    site: SitePackages, tmp_path: Path, refusal: Refusal, kind: str, words: str
) -> None:
    async def act() -> None:
        async with agent_deployment(site, tmp_path, reports, refusals=[refusal] * 5) as there:
            error = (await there.call_task())["error"]
            assert error["type"] == kind
            assert words in error["message"]
            assert error["retryable"] is False

    run(act)


def test_every_provider_error_has_a_message() -> None:
    for code, kind in PROVIDER_ERRORS.items():
        told = tool_errors.failure(TransportError(code, "detail"), wrote=False, so_far={})
        if code != "no_audio":  # Agents run in text mode.
            assert told.message != "The agent could not finish: its model failed."
        if not kind.recoverable:
            assert told.type == "PERMANENT"


def test_a_task_that_wrote_something_is_not_retryable() -> None:
    told = tool_errors.failure(TransportError("network"), wrote=True, so_far={})
    assert (told.type, told.retryable, told.partial_side_effects) == (
        "TRANSIENT",
        False,
        True,
    )


def test_an_agent_needs_a_provider(site: SitePackages, tmp_path: Path) -> None:
    async def act() -> None:
        async with agent_deployment(site, tmp_path, reports, provider="nowhere") as there:
            error = (await there.call_task())["error"]
            assert error["type"] == "PERMANENT"
            assert "no provider is set up" in error["message"]

    run(act)


def test_an_agent_needs_the_store(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act() -> None:
        async with agent_deployment(site, tmp_path, reports) as there:

            async def tell(what: str) -> None: ...

            async def away(*_: Any, **__: Any) -> None:
                raise StoreUnavailableError("gone")

            view = there.runtime.capabilities["agents"].for_session(there.session)
            with monkeypatch.context() as patch:
                patch.setattr(there.runtime.store, "put", away)
                with pytest.raises(ToolError) as raised:
                    await view.work("x", tools=(), tell=tell)
            assert (raised.value.type, raised.value.retryable) == ("TRANSIENT", True)
            assert (await view.work("x", tools=(), tell=tell)).text == "It was found."

    run(act)
