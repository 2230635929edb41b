"""How a connection ends, and how one does not begin."""

from __future__ import annotations

from dataclasses import replace

from jackfield.transport.events import Audio, Closed, TextDelta, ToolCalls, Trouble
from jackfield.transport.protocol import Connection, ToolResult, TransportError
from jackfield.transport.troubles import TROUBLES
from jackfield_scripted import Refusal, ScriptedModel
from jackfield_scripted.audio import tone

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.transport_contract.stage import Ear, Stage, closed, on_a_loop

_REFUSALS = (
    (Refusal(401, "invalid_api_key", "Incorrect API key provided."), "authentication"),
    (Refusal(429, "rate_limit_exceeded", "Too many requests.", retry_after=3), "rate_limit_exceeded"),
    (Refusal(500, "server_error", "Something broke."), "server_error"),
)


async def _answers(model: ScriptedModel) -> None:
    await model.hears()
    await model.says("Good day.")


class EndTests:
    """The end is one event, with a reason that somebody can act on."""

    @on_a_loop
    async def test_closing_ends_the_events_once(self, stage: Stage) -> None:
        """After our own close the last event is Closed, without a code; closing again is harmless."""
        async with stage.talk(_answers) as talk:
            await talk.says("Hello.")
            await talk.connection.close()
            same(closed(await talk.closes()).code, "", "the code of a connection that we closed")

    @on_a_loop
    async def test_verbs_after_the_end_do_nothing(self, stage: Stage) -> None:
        """Whoever still talks into a closed line is not punished for it."""
        async with stage.talk(_answers) as talk:
            await talk.says("Hello.")
            events = list(await talk.closes())
            await _every_verb(talk.connection)
            same(await talk.closes(), events, "the events after the end")

    @on_a_loop
    async def test_closing_while_the_model_speaks(self, stage: Stage) -> None:
        """Hanging up in the middle is an end like any other."""

        async def talks(model: ScriptedModel) -> None:
            await model.hears()
            await model.says(" ".join(["word"] * 300), pieces=300)

        async with stage.talk(talks, split=256 if stage.mode == "text" else 16_384, delay=0.004) as talk:
            await talk.connection.send_text("Tell me everything.")
            await talk.ear.next(TextDelta if stage.mode == "text" else Audio)
            same(closed(await talk.closes()).code, "", "the code of a connection that we closed")

    @on_a_loop
    async def test_refusals_are_named(self, stage: Stage) -> None:
        """A bad key, too many requests, a broken server: the code says which, and how long to wait."""
        for refusal, code in _REFUSALS:
            async with stage.serving(stage.mode, _answers, refusals=[refusal] * 10) as served:
                try:
                    connection = await served.transport.connect(stage.opening)
                except TransportError as error:
                    same(error.code, code, f"the code for status {refusal.status}")
                    if refusal.retry_after:
                        same(error.retry_after, float(refusal.retry_after), "how long to wait")
                else:
                    ear = Ear(connection)
                    await connection.send_text("Hello.")
                    same(await _trouble(ear), code, f"the code for status {refusal.status}")
                    await connection.close()
                    await ear.to_the_end()
                await served.transport.close()

    @on_a_loop
    async def test_close_codes_are_named(self, stage: Stage) -> None:
        """An end that the provider made says why, in a code of ours (a request that breaks off: network)."""
        codes = stage.close_codes if stage.mode == "voice" else {1011: "network"}
        for number, code in codes.items():

            async def ends(model: ScriptedModel, number: int = number) -> None:
                await model.hears()
                await model.closes(number)

            async with stage.talk(ends) as talk:
                await talk.connection.send_text("Hello.")
                same(await _trouble(talk.ear), code, f"the code for an end with {number}")
                events = await talk.closes()
                closed(events)
                same([each for each in events if isinstance(each, ToolCalls)], [], "calls")

    @on_a_loop
    async def test_errors_of_the_provider_are_named(self, stage: Stage) -> None:
        """A fault that the provider reports comes with a code of ours."""
        for code in ("server_error", "rate_limit_exceeded"):

            async def fails(model: ScriptedModel, code: str = code) -> None:
                await model.hears()
                await model.fails(code, "Something went wrong.")

            async with stage.talk(fails) as talk:
                await talk.connection.send_text("Hello.")
                same(await _trouble(talk.ear), code, f"the code for {code}")

    @on_a_loop
    async def test_nobody_answers(self, stage: Stage) -> None:
        """A server that is not there is trouble of the network, told and not raised as something else."""
        async with stage.serving(stage.mode, _answers) as served:
            transport = served.transport
        try:
            connection = await transport.connect(replace(stage.opening))
        except TransportError as error:
            same(error.code, "network", "the code when nobody answers")
        else:
            ear = Ear(connection)
            await connection.send_text("Hello.")
            same(await _trouble(ear), "network", "the code when nobody answers")
            await connection.close()
            await ear.to_the_end()
        await transport.close()


async def _trouble(ear: Ear) -> str:
    """The code of the first Trouble, or of the end."""
    while not (
        codes := [each.code for each in ear.events if isinstance(each, Trouble | Closed) and each.code]
    ):
        await ear.anything()
    holds(codes[0] in TROUBLES, f"{codes[0]!r} is not one of TROUBLES")
    return codes[0]


async def _every_verb(connection: Connection) -> None:
    await connection.send_text("Is anybody there?")
    await connection.send_audio(tone(20))
    await connection.send_results([ToolResult("call_1", "look_up", b"{}")])
    await connection.send_context("Nobody.", respond=True)
    await connection.interrupt()
    await connection.truncate("item_1", 0)
    await connection.close()
