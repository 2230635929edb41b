"""The real model, where its file is: what it makes of requests as people write them, and how it stops.

Name the file in JACKFIELD_TEST_GGUF; the requests take a few minutes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import local_held_out
import pytest
from jackfield.transport.protocol import TransportError
from jackfield_local.llama.engine import Engine, Message
from jackfield_local.llama.mind import Llama
from jackfield_local.options import Options
from local_requests import NOW
from local_session import session, tried

GGUF = os.environ.get("JACKFIELD_TEST_GGUF", "")

pytestmark = pytest.mark.skipif(
    not GGUF, reason="needs a language model: JACKFIELD_TEST_GGUF=/path/to/model.gguf"
)

BRIEF = (Message("system", "You count as far as you are asked to, in digits, without a word."),)


@asynccontextmanager
async def _llama() -> AsyncIterator[Llama]:
    mind = Llama(Options(mind="llama", model_path=GGUF, time_zone="Europe/Berlin"), clock=lambda: NOW)
    try:
        yield mind
    finally:
        await mind.close()


def test_requests_and_small_talk_that_nothing_was_tuned_to() -> None:
    async def go() -> tuple[dict[str, str], list[str]]:
        async with _llama() as mind:
            found = {each.says: await tried(each, mind) for each in local_held_out.REQUESTS}
            called = []
            for said in local_held_out.SMALL_TALK:
                async with session("text", mind) as talk:
                    assert (await talk.says(said)).strip()
                    called += [said] if talk.calls else []
        return {says: why for says, why in found.items() if why}, called

    failed, called = asyncio.run(go())
    assert len(failed) <= 0.1 * len(local_held_out.REQUESTS), failed
    assert called == []


def test_an_answer_rests_on_the_record_and_names_it() -> None:
    hours = "The studio is open from 8:15 to 19:45. Dogs are welcome on Fridays."
    found = {"results": [{"id": "doc:hours", "title": "Opening hours", "snippet": hours, "score": 0.9}]}

    async def go() -> str:
        async with _llama() as mind, session("text", mind) as talk:
            await talk.says("when does the studio open in the morning?")
            return await talk.gets(found)

    answer, _, source = asyncio.run(go()).partition("\n\nSource: ")
    assert "8:15" in answer
    assert source == "Opening hours [doc:hours]"


def test_it_stops_where_nobody_listens_and_can_be_asked_again() -> None:
    async def go() -> None:
        engine = Engine(Path(GGUF))
        count = (Message("user", "Count to 500."),)
        async with aclosing(engine.write(BRIEF, count, most=900)) as pieces:
            assert (await anext(pieces)).text
        few = [piece async for piece in engine.write(BRIEF, count, most=5)]
        assert few[-1].cut
        with pytest.raises(TransportError, match="exceeds the available context size"):
            _ = [piece async for piece in engine.write(BRIEF, (Message("user", "word " * 9000),), most=5)]
        await engine.close()

    asyncio.run(go())
