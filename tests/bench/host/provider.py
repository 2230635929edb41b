"""The provider, in its own process: audio is echoed, text is answered at once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from bench.host.processes import announced

BEGUN: list[tuple[str, dict[str, Any]]] = [
    ("session.updated", {"session": {"type": "realtime"}}),
    ("response.created", {"response": {"object": "realtime.response", "id": "resp_1", "output": []}}),
]
DELTA = (
    '{"type":"response.output_audio.delta","event_id":"event_1","response_id":"resp_1","item_id":"item_1",'
    '"output_index":0,"content_index":0,"delta":"%s"}'
)


async def plain(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_bytes(await socket.receive_bytes())
    except WebSocketDisconnect:
        pass


async def realtime(socket: WebSocket) -> None:
    await socket.accept("realtime" if "realtime" in socket.scope["subprotocols"] else None)
    try:
        while True:
            message = await socket.receive_text()
            # Parsing every audio frame would make this the slower side.
            if "input_audio_buffer.append" in message[:80]:
                audio = message.partition('"audio"')[2].split('"', 2)[1]
                await socket.send_text(DELTA % audio)
            elif json.loads(message)["type"] == "session.update":
                for kind, fields in BEGUN:
                    await socket.send_text(json.dumps({"type": kind, "event_id": "event_1", **fields}))
    except WebSocketDisconnect:
        pass


LAST: dict[str, Any] = {}


async def completions(request: Request) -> StreamingResponse:
    LAST.update(await request.json())
    return StreamingResponse(_answer(LAST["messages"][-1]), media_type="text/event-stream")


async def last(_: Request) -> JSONResponse:
    """Return the last request, so that it can be repeated without a host."""
    return JSONResponse(LAST)


async def _answer(asked: dict[str, Any]) -> Any:
    if asked["role"] == "user" and "tool" in str(asked["content"]):
        function = {"name": "format_datetime", "arguments": '{"timezone":"UTC"}'}
        call = {"index": 0, "id": "call_12345678", "type": "function", "function": function}
        yield _chunk({"role": "assistant", "tool_calls": [call]}, "tool_calls")
    else:
        yield _chunk({"role": "assistant", "content": "Yes."}, None)
        yield _chunk({}, "stop")
    yield b"data: [DONE]\n\n"


def _chunk(delta: dict[str, Any], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"


app = Starlette(
    routes=[
        WebSocketRoute("/plain", plain),
        WebSocketRoute("/v1/realtime", realtime),
        Route("/last", last),
        Route("/v1/chat/completions", completions, methods=["POST"]),
    ]
)


if __name__ == "__main__":
    asyncio.run(
        announced(
            uvicorn.Config(app, ws="websockets-sansio", ws_per_message_deflate=False, log_level="error")
        )
    )
