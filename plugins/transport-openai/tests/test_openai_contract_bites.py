"""The contract tests of transports find what they are there for: each of these breaks one promise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from jackfield import Mode
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import (
    Audio,
    Closed,
    Event,
    Interrupted,
    ProviderError,
    SpeechStopped,
    TextDelta,
    ToolCalls,
    Transcript,
    TurnComplete,
    Usage,
)
from jackfield.transport.protocol import ConnectionConfig, TransportError
from jackfield_openai import schemas
from jackfield_openai.settings import OpenAISettings
from jackfield_openai.transport import OpenAITransport
from jackfield_scripted import Refusal, Script
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit import TransportContractTests
from jackfield_testkit.transport import ServedTransport
from jackfield_testkit.transport import harness as harness_module

Change = Callable[[Event], Sequence[Event]]


class BrokenConnection:
    """A connection with one thing wrong: what its events become, or what becomes of its verbs."""

    def __init__(self, inner: Any, change: Change, verbs: dict[str, Any]) -> None:
        self._inner = inner
        self._change = change
        self._verbs = verbs

    def __getattr__(self, name: str) -> Any:
        verb = self._verbs.get(name)
        return getattr(self._inner, name) if verb is None else lambda *a, **k: verb(self._inner, *a, **k)

    async def events(self) -> AsyncIterator[Event]:
        async for event in self._inner.events():
            for each in self._change(event):
                yield each


class BrokenTransport(OpenAITransport):
    def __init__(self, options: OpenAISettings, change: Change, verbs: dict[str, Any]) -> None:
        super().__init__(options)
        self.change, self.verbs = change, verbs

    async def connect(self, opening: ConnectionConfig) -> Any:
        changed = replace(opening, history=self.verbs.get("history", opening.history))
        try:
            return BrokenConnection(await super().connect(changed), self.change, self.verbs)
        except TransportError as error:
            raise TransportError("server_error", error.detail) from None


class Suite(TransportContractTests, abstract=True):
    pass


def without(kind: type) -> Change:
    return lambda event: () if isinstance(event, kind) else (event,)


def twice(kind: type) -> Change:
    return lambda event: (event, event) if isinstance(event, kind) else (event,)


def instead(kind: type, make: Callable[[Any], Sequence[Event]]) -> Change:
    return lambda event: make(event) if isinstance(event, kind) else (event,)


def renamed(event: ToolCalls) -> Sequence[Event]:
    return (ToolCalls(tuple(ToolCall(each.tool_id, "{}", each.call_id) for each in event.calls)),)


def one_by_one(event: ToolCalls) -> Sequence[Event]:
    return [ToolCalls((each,)) for each in event.calls]


async def nothing(inner: Any, *given: Any, **named: Any) -> None:
    pass


async def exploding(inner: Any, *given: Any, **named: Any) -> None:
    raise RuntimeError("the line is closed")


async def uncut(inner: Any, item: str, heard_ms: int) -> None:
    await inner._send(
        {"type": "conversation.item.truncate", "item_id": item, "content_index": 0, "audio_end_ms": heard_ms}
    )


def same(event: Event) -> Sequence[Event]:
    return (event,)


WAITS = "did not answer within"
"""The message when an expected event does not arrive."""

BROKEN: list[tuple[str, Mode, Change, dict[str, Any], str]] = [
    ("test_response_is_streamed_and_completed_once", "text", twice(TextDelta), {}, "the model's text"),
    (
        "test_response_is_streamed_and_completed_once",
        "voice",
        twice(TurnComplete),
        {},
        "the number of completed turns",
    ),
    ("test_each_message_gets_its_own_response", "voice", without(TurnComplete), {}, WAITS),
    ("test_history_reaches_the_model_in_order", "voice", same, {"history": ()}, "did not reach the model"),
    (
        "test_context_reaches_the_model_without_a_response",
        "text",
        same,
        {"send_context": nothing},
        "the context did not reach",
    ),
    ("test_usage_is_reported", "voice", without(Usage), {}, "there was no Usage event"),
    (
        "test_parallel_calls_are_one_event",
        "text",
        instead(ToolCalls, one_by_one),
        {},
        "the tools of the calls",
    ),
    ("test_parallel_calls_are_one_event", "voice", same, {"send_results": nothing}, WAITS),
    (
        "test_malformed_arguments_are_delivered_unchanged",
        "voice",
        instead(ToolCalls, renamed),
        {},
        "as written",
    ),
    ("test_duplicate_calls_are_delivered_with_the_same_id", "text", twice(ToolCalls), {}, WAITS),
    ("test_interrupt_stops_the_model", "text", same, {"interrupt": nothing}, WAITS),
    ("test_interrupt_stops_the_model", "voice", without(Interrupted), {}, WAITS),
    (
        "test_interrupt_without_a_response_does_nothing",
        "voice",
        twice(Interrupted),
        {"interrupt": exploding},
        "the line is closed",
    ),
    ("test_barge_in_truncates_at_the_played_position", "voice", same, {"truncate": nothing}, WAITS),
    ("test_truncation_beyond_the_end_is_clamped", "voice", same, {"truncate": uncut}, WAITS),
    ("test_truncation_at_zero_deletes_the_item", "voice", same, {"truncate": nothing}, WAITS),
    ("test_speech_is_detected_and_answered", "voice", without(Audio), {}, "length of the response"),
    ("test_speech_start_and_stop_are_reported", "voice", without(SpeechStopped), {}, "the user's speech"),
    ("test_both_speakers_are_transcribed", "voice", twice(Transcript), {}, "the user's transcript"),
    (
        "test_filler_is_not_part_of_the_response",
        "voice",
        instead(Audio, lambda e: (Audio(e.pcm, e.item),)),
        {},
        "marked as a filler",
    ),
    (
        "test_slow_reader_gets_all_audio_in_order",
        "voice",
        instead(Audio, lambda e: (Audio(e.pcm[::-1], e.item),)),
        {},
        "incomplete or out of order",
    ),
    ("test_close_ends_the_events_once", "voice", twice(Closed), {}, "exactly one Closed"),
    ("test_close_ends_the_events_once", "text", without(Closed), {}, "exactly one Closed"),
    ("test_methods_do_nothing_after_the_end", "voice", same, {"send_audio": exploding}, "the line is closed"),
    ("test_refusals_have_error_codes", "voice", same, {}, "the code for status 401"),
    (
        "test_close_codes_map_to_error_codes",
        "voice",
        instead(Closed, lambda e: (Closed("network"),)),
        {},
        "the close code 1001",
    ),
    (
        "test_provider_errors_have_error_codes",
        "text",
        instead(ProviderError, lambda e: (ProviderError("oops"),)),
        {},
        "not one of PROVIDER_ERRORS",
    ),
]


@pytest.mark.parametrize(("test", "mode", "change", "verbs", "sentence"), BROKEN)
def test_a_broken_transport_fails_its_contract_test(
    test: str,
    mode: Mode,
    change: Change,
    verbs: dict[str, Any],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
    import openai.resources.realtime  # noqa: F401 - which takes longer than the limit below

    monkeypatch.setattr(harness_module, "TIME_LIMIT", 2.5)

    @asynccontextmanager
    async def serve(
        mode: Mode, *scripts: Script, refusals: Sequence[Refusal] = (), split: int = 0, delay: float = 0.0
    ) -> AsyncIterator[ServedTransport]:
        async with OpenAIServer(*scripts, refusals=refusals, split=split, delay=delay) as server:
            options = OpenAISettings(base_url=server.base_url, retries=0)
            yield ServedTransport(BrokenTransport(options, change, verbs), server.models)

    def declare(mode: Mode, tool_id: str, parameters: dict[str, Any]) -> Any:
        adapt = schemas.realtime if mode == "voice" else schemas.chat
        return adapt(tool_id, "A tool.", parameters).declaration

    harness = harness_module.TransportHarness(serve, declare, mode, dict(TransportContractTests.close_codes))
    with pytest.raises((pytest.fail.Exception, AssertionError, RuntimeError)) as found:
        getattr(Suite(), test)(harness)
    assert sentence in str(found.value)


def test_contract_test_cannot_be_replaced() -> None:
    with pytest.raises(TypeError, match="replaces the contract test test_usage_is_reported"):

        class Cheating(TransportContractTests, abstract=True):
            def test_usage_is_reported(self) -> None:  # type: ignore[override]
                pass


def test_suite_requires_a_serve_method() -> None:
    with pytest.raises(TypeError, match="define `def serve"):

        class Empty(TransportContractTests):
            pass
