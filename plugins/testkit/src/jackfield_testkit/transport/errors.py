"""Tests of errors and of the end of a connection."""

from __future__ import annotations

from dataclasses import replace

from jackfield.transport.events import Audio, Closed, ProviderError, TextDelta, ToolCalls
from jackfield.transport.protocol import Connection, ToolResult, TransportError
from jackfield.transport.provider_errors import PROVIDER_ERRORS
from jackfield_scripted import Refusal, ScriptedModel
from jackfield_scripted.audio import tone

from jackfield_testkit.suite import expect, expect_equal
from jackfield_testkit.transport.harness import EventCollector, TransportHarness, async_test, closed_event

_REFUSALS = (
    (Refusal(401, "invalid_api_key", "Incorrect API key provided."), "authentication"),
    (Refusal(429, "rate_limit_exceeded", "Too many requests.", retry_after=3), "rate_limit_exceeded"),
    (Refusal(500, "server_error", "Something broke."), "server_error"),
)


async def _answers(model: ScriptedModel) -> None:
    await model.hears()
    await model.says("Good day.")


class ErrorTests:
    """The end of a connection, and the error codes of failures."""

    @async_test
    async def test_close_ends_the_events_once(self, harness: TransportHarness) -> None:
        """After `close` the last event is Closed without a code; a second `close` does nothing."""
        async with harness.connect(_answers) as link:
            await link.send("Hello.")
            await link.connection.close()
            expect_equal(closed_event(await link.close()).code, "", "the code after close()")

    @async_test
    async def test_methods_do_nothing_after_the_end(self, harness: TransportHarness) -> None:
        """Calling any method after the end is harmless."""
        async with harness.connect(_answers) as link:
            await link.send("Hello.")
            events = list(await link.close())
            await _call_every_method(link.connection)
            expect_equal(await link.close(), events, "the events after the end")

    @async_test
    async def test_close_works_while_the_model_speaks(self, harness: TransportHarness) -> None:
        """`close` during a response ends the connection without an error."""

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            await model.says(" ".join(["word"] * 300), pieces=300)

        async with harness.connect(
            script, split=256 if harness.mode == "text" else 16_384, delay=0.004
        ) as link:
            await link.connection.send_text("Tell me everything.")
            await link.collector.next(TextDelta if harness.mode == "text" else Audio)
            expect_equal(closed_event(await link.close()).code, "", "the code after close()")

    @async_test
    async def test_refusals_have_error_codes(self, harness: TransportHarness) -> None:
        """A bad key, a rate limit and a server error have different codes, with the time to wait."""
        for refusal, code in _REFUSALS:
            async with harness.serve(harness.mode, _answers, refusals=[refusal] * 10) as served:
                try:
                    connection = await served.transport.connect(harness.config)
                except TransportError as error:
                    expect_equal(error.code, code, f"the code for status {refusal.status}")
                    if refusal.retry_after:
                        expect_equal(error.retry_after, float(refusal.retry_after), "retry_after")
                else:
                    collector = EventCollector(connection)
                    await connection.send_text("Hello.")
                    expect_equal(await _error_code(collector), code, f"the code for status {refusal.status}")
                    await connection.close()
                    await collector.all()
                await served.transport.close()

    @async_test
    async def test_close_codes_map_to_error_codes(self, harness: TransportHarness) -> None:
        """When the provider closes the connection, the event has an error code (`network` for a request)."""
        codes = harness.close_codes if harness.mode == "voice" else {1011: "network"}
        for number, code in codes.items():

            async def script(model: ScriptedModel, number: int = number) -> None:
                await model.hears()
                await model.closes(number)

            async with harness.connect(script) as link:
                await link.connection.send_text("Hello.")
                expect_equal(
                    await _error_code(link.collector), code, f"the error code for the close code {number}"
                )
                events = await link.close()
                closed_event(events)
                expect_equal([each for each in events if isinstance(each, ToolCalls)], [], "the calls")

    @async_test
    async def test_provider_errors_have_error_codes(self, harness: TransportHarness) -> None:
        """An error that the provider reports has an error code."""
        for code in ("server_error", "rate_limit_exceeded"):

            async def script(model: ScriptedModel, code: str = code) -> None:
                await model.hears()
                await model.fails(code, "Something went wrong.")

            async with harness.connect(script) as link:
                await link.connection.send_text("Hello.")
                expect_equal(await _error_code(link.collector), code, f"the code for {code}")

    @async_test
    async def test_unreachable_provider_is_a_network_error(self, harness: TransportHarness) -> None:
        """A server that cannot be reached is reported with the code `network`."""
        async with harness.serve(harness.mode, _answers) as served:
            transport = served.transport
        try:
            connection = await transport.connect(replace(harness.config))
        except TransportError as error:
            expect_equal(error.code, "network", "the code without a server")
        else:
            collector = EventCollector(connection)
            await connection.send_text("Hello.")
            expect_equal(await _error_code(collector), "network", "the code without a server")
            await connection.close()
            await collector.all()
        await transport.close()


async def _error_code(collector: EventCollector) -> str:
    """Return the code of the first ProviderError or Closed event that has one."""
    while not (
        codes := [
            each.code for each in collector.events if isinstance(each, ProviderError | Closed) and each.code
        ]
    ):
        await collector.wait()
    expect(codes[0] in PROVIDER_ERRORS, f"{codes[0]!r} is not one of PROVIDER_ERRORS")
    return codes[0]


async def _call_every_method(connection: Connection) -> None:
    await connection.send_text("Hello?")
    await connection.send_audio(tone(20))
    await connection.send_results([ToolResult("call_1", "look_up", b"{}")])
    await connection.send_context("No one.", respond=True)
    await connection.interrupt()
    await connection.truncate("item_1", 0)
    await connection.close()
