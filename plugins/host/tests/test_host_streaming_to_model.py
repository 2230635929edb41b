"""Partial results for a model that does not wait for its calls, over Gemini Live."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from host_harness import HostFolder, Provider, running_host, scripted_provider, wait_until
from jackfield_scripted import ScriptedCall
from jackfield_scripted.gemini import GeminiOptions, LiveModel

FIRST = "0 1 2 3 4 "
CALL = "call-of-the-model"


def gemini(served: Provider, calls: str) -> dict[str, Any]:
    return {"transports": {"gemini": {**served.table, "calls": calls}}}


def text_of(parts: list[Any]) -> str:
    return "".join(each["partialResult"] for each in parts if "partialResult" in each)


# A call with a long latency budget continues in the background after a second.
@pytest.mark.parametrize("tool", ["hst_streams", "hst_stream_long"])
def test_a_model_gets_parts_while_a_call_runs_and_then_its_result(host_folder: HostFolder, tool: str) -> None:
    async def script(model: LiveModel) -> None:
        await model.hears_speech("count")
        calling = asyncio.create_task(model.calls(ScriptedCall(tool, {"text": "x", "before": "go"}, CALL)))
        inbox = model.inbox
        await inbox.until(lambda: True if text_of(inbox.parts.get(CALL, [])) == FIRST else None)
        if tool == "hst_stream_long":
            await inbox.until(lambda: True if "background" in str(inbox.parts[CALL]) else None)
        await model.says("It has counted to four.")
        assert CALL in inbox.open
        host_folder.open_gate("go")
        results = await calling
        assert results[CALL]["data"] == {"counted": list(range(10))}
        continues = [each["willContinue"] for each in inbox.responses]
        assert continues == [True] * (len(continues) - 1) + [False]
        # Nobody asked the model to speak of a part, only of the result.
        assert [each["scheduling"] for each in inbox.responses[:-1]] == ["SILENT"] * (len(continues) - 1)
        assert inbox.responses[-1]["scheduling"] == "WHEN_IDLE"
        await model.says("Ten numbers.")
        await asyncio.Event().wait()

    async def main() -> None:
        options = GeminiOptions(blocking=False)
        async with (
            scripted_provider(script, provider="gemini", options=options) as served,  # type: ignore[arg-type]
            running_host(host_folder, served, tables=gemini(served, "non_blocking")) as host,
            host.client("voice") as ada,
        ):
            await ada.speak()
            await ada.until(lambda: "Ten numbers." in ada.said("assistant") or served.failures)
            assert served.failures == []

    asyncio.run(main())


def test_a_model_that_waits_gets_only_the_result(host_folder: HostFolder) -> None:
    async def script(model: LiveModel) -> None:
        await model.hears_speech("count")
        await model.calls(ScriptedCall("hst_streams", {"text": "x", "before": "go"}, CALL))
        assert (len(model.inbox.responses), model.inbox.parts) == (1, {})
        await model.says("Ten numbers.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script, provider="gemini") as served,  # type: ignore[arg-type]
            running_host(host_folder, served, tables=gemini(served, "blocking")) as host,
            host.client("voice") as ada,
        ):
            await ada.speak()
            await wait_until(lambda: [each for each in ada.of("tool_progress") if each.get("data")])
            host_folder.open_gate("go")
            await ada.until(lambda: "Ten numbers." in ada.said("assistant") or served.failures)
            assert served.failures == []

    asyncio.run(main())
