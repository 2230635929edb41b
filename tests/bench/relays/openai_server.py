"""The server, in its own process: plain frames at `/plain`, Realtime at `/v1/realtime`."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from bench.relays.workload import FRAME, FRAMES

DELTA = json.dumps(
    {
        "type": "response.output_audio.delta",
        "event_id": "event_DZx2vJ5WbPq8sKtY3mNcR",
        "response_id": "resp_DZx2vHq7LfTn4wGyB6kPd",
        "item_id": "item_DZx2vM9RcVj1sXhE5tQzA",
        "output_index": 0,
        "content_index": 0,
        "delta": base64.b64encode(FRAME).decode(),
    }
)
HEARD = "conversation.item.input_audio_transcription.completed"
RESPONSE: dict[str, Any] = {"object": "realtime.response", "id": "resp_DZx2vHq7LfTn4wGyB6kPd", "output": []}


async def _until_it_breaks(socket: ServerConnection) -> AsyncIterator[str | bytes]:
    # A program exits after its measurement without closing anything.
    with suppress(ConnectionClosed):
        async for message in socket:
            yield message


async def plain(socket: ServerConnection) -> None:
    counted = 0
    async for message in _until_it_breaks(socket):
        if message == "go":
            for _ in range(FRAMES):
                await socket.send(FRAME)
        else:
            counted += 1
            if counted % FRAMES == 0:
                await socket.send("all there")


async def realtime(socket: ServerConnection) -> None:
    counted = 0
    async for message in _until_it_breaks(socket):
        # Parsing every audio frame would make the server the slower side.
        if message[:40].find("input_audio_buffer.append") > 0:  # type: ignore[arg-type]
            counted += 1
            if counted % FRAMES == 0:
                await send(socket, HEARD, item_id="item_1", transcript="All there.", content_index=0)
            continue
        kind = json.loads(message)["type"]
        if kind == "session.update":
            await send(socket, "session.updated", session={"type": "realtime"})
        elif kind == "response.create":
            await send(socket, "response.created", response={**RESPONSE, "status": "in_progress"})
            for _ in range(FRAMES):
                await socket.send(DELTA)
            await send(socket, "response.done", response={**RESPONSE, "status": "completed"})


async def send(socket: ServerConnection, kind: str, **fields: Any) -> None:
    await socket.send(json.dumps({"type": kind, "event_id": "event_1", **fields}))


async def meet(socket: ServerConnection) -> None:
    assert socket.request is not None
    await (plain(socket) if socket.request.path == "/plain" else realtime(socket))


async def main() -> None:
    async with serve(meet, "127.0.0.1", 0, compression=None, max_size=None) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main())
