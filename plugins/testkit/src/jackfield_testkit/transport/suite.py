"""The contract suite for transports, with the tests of text conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, ClassVar

import orjson
import pytest
from jackfield import Mode
from jackfield.transport.events import TextDelta, Transcript, TurnComplete, Usage
from jackfield.transport.protocol import Utterance
from jackfield_scripted import Refusal, Script, ScriptedModel

from jackfield_testkit.suite import ContractTests, contract_tests, expect, expect_equal, require_override
from jackfield_testkit.transport.errors import ErrorTests
from jackfield_testkit.transport.harness import (
    INSTRUCTIONS,
    TOOLS,
    ServedTransport,
    TransportHarness,
    async_test,
)
from jackfield_testkit.transport.tool_calls import ToolCallTests
from jackfield_testkit.transport.voice import BargeInTests, InterruptTests, VoiceTests

_VOICE_ONLY = frozenset(contract_tests(VoiceTests, BargeInTests))
_SIGNATURE = "def serve(self, mode, *scripts, refusals=(), split=0, delay=0.0)"
_ANSWER = "The lighthouse opens at ten and closes at six."


async def _answers(model: ScriptedModel) -> None:
    await model.hears()
    await model.says(_ANSWER, pieces=4)


class TurnTests:
    """Text conversations without tools."""

    @async_test
    async def test_response_is_streamed_and_completed_once(self, harness: TransportHarness) -> None:
        """Pieces arrive in order as they are produced, followed by one TurnComplete."""
        async with harness.connect(_answers) as link:
            await link.send("When do you open?")
            expect_equal(link.collector.text(), _ANSWER, "the model's text")
            pieces = len(link.collector.of(TextDelta)) or len(link.collector.of(Transcript))
            expect(pieces > 1, f"a response in four pieces arrived as {pieces}")
            events = await link.close()
            expect_equal(
                len([each for each in events if isinstance(each, TurnComplete)]),
                1,
                "the number of completed turns",
            )
            last = max(n for n, each in enumerate(events) if isinstance(each, TextDelta | Transcript))
            completed = next(n for n, each in enumerate(events) if isinstance(each, TurnComplete))
            expect(last < completed, "TurnComplete came before the last text")

    @async_test
    async def test_model_gets_text_instructions_and_tools(self, harness: TransportHarness) -> None:
        """The model receives the user's text, the instructions and all tools."""
        heard: list[str] = []

        async def script(model: ScriptedModel) -> None:
            heard.append((await model.hears()).text)
            await model.says("Yes.")

        async with harness.connect(script) as link:
            await link.send("Is it 10 o'clock: «already»? 灯台")
            expect_equal(heard, ["Is it 10 o'clock: «already»? 灯台"], "the texts that the model received")
            expect(INSTRUCTIONS in link.model.instructions, "the instructions did not reach the model")
            expect_equal(len(link.model.tools), len(TOOLS), "the number of tools that the model received")

    @async_test
    async def test_each_message_gets_its_own_response(self, harness: TransportHarness) -> None:
        """Messages are answered one after the other."""
        heard: list[str] = []

        async def script(model: ScriptedModel) -> None:
            for _ in range(3):
                text = (await model.hears()).text
                heard.append(text)
                await model.says(f"You said {text} ")

        async with harness.connect(script) as link:
            for text in ("one", "two", "three"):
                await link.send(text)
            expect_equal(heard, ["one", "two", "three"], "the texts that the model received")
            expect_equal(
                link.collector.text(), "You said one You said two You said three ", "the model's text"
            )

    @async_test
    async def test_history_reaches_the_model_in_order(self, harness: TransportHarness) -> None:
        """The history of a new connection reaches the model once, in order."""
        history = (
            Utterance("user", "My name is Ada."),
            Utterance("assistant", "Good day, Ada."),
            Utterance("user", "I like ships."),
            Utterance("assistant", "So do I."),
        )
        async with harness.connect(_answers, history=history) as link:
            await link.send("What is my name?")
            received = orjson.dumps(link.model.received).decode()
            places = [received.find(each.text) for each in history]
            expect(min(places) >= 0, f"the history did not reach the model: {received:.600}")
            expect_equal(places, sorted(places), "the order of the history")
            expect_equal(received.count("My name is Ada."), 1, "how often the history reached the model")

    @async_test
    async def test_context_reaches_the_model_without_a_response(self, harness: TransportHarness) -> None:
        """Context reaches the model before the next message and gets no response of its own."""
        async with harness.connect(_answers) as link:
            await link.connection.send_context("The museum is closed on Mondays.")
            await link.send("When do you open?")
            received = orjson.dumps(link.model.received).decode()
            context, question = received.find("closed on Mondays"), received.find("When do you open?")
            expect(0 <= context < question, "the context did not reach the model before the next message")
            expect_equal(len(link.collector.of(TurnComplete)), 1, "the number of completed turns")

    @async_test
    async def test_context_can_request_a_response(self, harness: TransportHarness) -> None:
        """With `respond` the model responds without a message from the user."""
        async with harness.connect(_answers) as link:
            await link.connection.send_context("The photo has been uploaded.", respond=True)
            await link.collector.next(TurnComplete)
            expect_equal(link.collector.text(), _ANSWER, "the model's text")

    @async_test
    async def test_usage_is_reported(self, harness: TransportHarness) -> None:
        """Input and output tokens are reported."""
        async with harness.connect(_answers) as link:
            await link.send("When do you open?")
            events = await link.close()
            usage = [each for each in events if isinstance(each, Usage)]
            expect(usage, "there was no Usage event")
            expect(
                all(each.input_tokens > 0 and each.output_tokens > 0 for each in usage),
                f"the usage is {usage}",
            )

    @async_test
    async def test_slow_and_split_frames_are_reassembled(self, harness: TransportHarness) -> None:
        """A response that arrives in small pieces is complete."""
        answer = "Ünïcode pieces: 灯台, one, two, three."

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            await model.says(answer)

        async with harness.connect(script, split=7 if harness.mode == "text" else 400, delay=0.0002) as link:
            await link.send("Say it slowly.")
            expect_equal(link.collector.text(), answer, "the model's text")


class TransportContractTests(
    ContractTests, TurnTests, ToolCallTests, InterruptTests, VoiceTests, BargeInTests, ErrorTests, suite=True
):
    """Subclass it and define `serve` and `declare` to run the contract tests of a transport.

    A contract test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report shows the
    reason. `class Ours(TransportContractTests, abstract=True)` makes a base class that does not run itself.
    """

    overridable = frozenset({"modes", "waived", "close_codes", "serve", "declare"})

    modes: ClassVar[tuple[Mode, ...]] = ("text", "voice")
    """The modes in which the transport is tested."""

    close_codes: ClassVar[Mapping[int, str]] = MappingProxyType(
        {1000: "network", 1001: "going_away", 1008: "invalid_request_error", 1011: "server_error"}
    )
    """The error code in `Closed` for each close code of a voice connection."""

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a class that does not define `serve`."""
        require_override(cls, "serve", _SIGNATURE)

    def serve(
        self,
        mode: Mode,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        split: int = 0,
        delay: float = 0.0,
    ) -> AbstractAsyncContextManager[ServedTransport]:
        """Start a server that plays the scripts, and a transport that connects to it, until the block ends.

        The server first rejects one connection or request for each of the `refusals`. With `split` it sends
        in pieces of that many bytes, `delay` seconds apart.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define `{_SIGNATURE}`")

    def declare(self, mode: Mode, tool_id: str, parameters: dict[str, Any]) -> Any:
        """Return the declaration of a tool from the transport's schema adapter for that mode."""
        raise NotImplementedError(
            f"{type(self).__name__} has to define `def declare(self, mode, tool_id, parameters)`"
        )

    @pytest.fixture
    def harness(self, mode: Mode) -> TransportHarness:
        """Connects the transport to scripted models."""
        return TransportHarness(self.serve, self.declare, mode, dict(self.close_codes))

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Run a test in every mode that it applies to."""
        if "mode" in metafunc.fixturenames:
            modes: tuple[Any, ...] = self.modes
            if metafunc.function.__name__ in _VOICE_ONLY:
                unsupported = pytest.mark.skip(reason=f"{type(self).__name__} does not support voice")
                modes = ("voice",) if "voice" in modes else (pytest.param("voice", marks=unsupported),)
            metafunc.parametrize("mode", modes)
