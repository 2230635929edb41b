"""A way to a model that answers by the first word: price, book, wrong, trouble, or anything else."""

from __future__ import annotations

import asyncio
import json

from jackfield import ToolCall
from jackfield.transport.events import (
    Audio,
    Closed,
    Interrupted,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCalls,
    Transcript,
    ProviderError,
    TurnComplete,
    Usage,
)

CALLS = {
    "price": ("parcel_price", {"kilograms": 3}),
    "book": ("parcel_book", {"to": "Halden Street 4", "kilograms": 2}),
    "wrong": ("parcel_price", {"kilograms": "three"}),
}


class Post:
    modes = frozenset({"text", "voice"})

    def adapter(self, mode):
        return "golden"

    async def connect(self, opening):
        return Line(opening)

    async def close(self):
        pass


class Line:
    resume = None

    def __init__(self, opening):
        self.opening = opening
        self.coming = asyncio.Queue()
        self.heard = 0
        self.calls = 0

    async def events(self):
        while True:
            event = await self.coming.get()
            yield event
            if isinstance(event, Closed):
                return

    def come(self, *events):
        for event in events:
            self.coming.put_nowait(event)

    async def send_text(self, text):
        if text == "trouble":
            self.come(ProviderError("server_error", "The office is full."), TurnComplete())
            return
        asked = CALLS.get(text.partition(" ")[0])
        if asked is None:
            self.come(TextDelta("You wrote: "), TextDelta(text), Usage(12, 5), TurnComplete())
            return
        self.calls += 1
        tool_id, arguments = asked
        self.come(ToolCalls((ToolCall(tool_id, json.dumps(arguments), f"call_golden_{self.calls:04}"),)))

    async def send_audio(self, pcm):
        self.heard += len(pcm)
        if self.heard >= 9600:
            self.heard = -(10**9)
            self.come(
                SpeechStarted(),
                SpeechStopped(),
                Transcript("user", "What do you say?", True, "item_1"),
                Audio(b"\x00\x01" * 2400, "item_2"),
                Transcript("assistant", "I say this.", False, "item_2"),
                Transcript("assistant", "I say this.", True, "item_2"),
                TurnComplete(),
            )

    async def send_results(self, results, *, respond=True):
        for result in results:
            answer = json.loads(result.envelope)
            said = "Done." if answer["ok"] else f"Not done: {answer['error']['type']}."
            self.come(TextDelta(said))
        self.come(TurnComplete())

    async def send_context(self, text, *, respond=False):
        if respond:
            self.come(TextDelta("I see."), TurnComplete())

    async def interrupt(self):
        self.come(Interrupted())

    async def truncate(self, item, heard_ms):
        pass

    async def close(self):
        self.come(Closed())
