"""A minimal host: Starlette that echoes, and Starlette that relays audio."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from typing import Any

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import connect

from bench.host.processes import announced

UPSTREAM = f"ws://127.0.0.1:{os.environ.get('BENCH_PORT', '0')}"


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            await socket.send({**message, "type": "websocket.send"})
    except WebSocketDisconnect:
        pass


async def execute(request: Request) -> Response:
    """Parse the arguments of a call, run it in a coroutine and answer, without anything else."""
    return JSONResponse({"success": True, "output": await _described((await request.json())["arguments"])})


async def _described(arguments: dict[str, str]) -> str:
    return ", ".join(arguments.values())


async def relay(socket: WebSocket) -> None:
    """Relay audio unchanged, in both directions."""
    await socket.accept()
    async with connect(f"{UPSTREAM}/plain", compression=None) as upstream:

        async def back() -> None:
            async for frame in upstream:
                await socket.send_bytes(frame)  # type: ignore[arg-type]

        returning = asyncio.create_task(back())
        try:
            while True:
                await upstream.send(await socket.receive_bytes())
        except WebSocketDisconnect:
            returning.cancel()


async def by_hand(socket: WebSocket) -> None:
    """Relay audio in the format of OpenAI, with handwritten code."""
    await socket.accept()
    async with connect(f"{UPSTREAM}/v1/realtime", compression=None) as upstream:
        await upstream.send(json.dumps({"type": "session.update", "session": {}}))

        async def back() -> None:
            async for message in upstream:
                event = json.loads(message)
                if event["type"] == "response.output_audio.delta":
                    await socket.send_bytes(base64.b64decode(event["delta"]))

        returning = asyncio.create_task(back())
        try:
            while True:
                sound = base64.b64encode(await socket.receive_bytes()).decode()
                await upstream.send(json.dumps({"type": "input_audio_buffer.append", "audio": sound}))
        except WebSocketDisconnect:
            returning.cancel()


app = Starlette(
    routes=[
        Route("/execute/{tool}", execute, methods=["POST"]),
        WebSocketRoute("/echo", echo),
        WebSocketRoute("/relay", relay),
        WebSocketRoute("/by-hand", by_hand),
    ]
)


def config(application: Any = app) -> uvicorn.Config:
    return uvicorn.Config(
        application, ws="websockets-sansio", ws_per_message_deflate=False, log_level="error"
    )


if __name__ == "__main__":
    uvloop.run(announced(config()))
