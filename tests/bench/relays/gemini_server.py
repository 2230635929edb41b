"""The server over TLS, in its own process: plain frames at `/plain`, else Gemini Live."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from pathlib import Path
from typing import Any

import trustme
from websockets.asyncio.server import ServerConnection, serve

from bench.relays.openai_server import plain
from bench.relays.workload import FRAME, FRAMES

BLOB = {"mimeType": "audio/pcm;rate=24000", "data": base64.b64encode(FRAME).decode()}
SPEECH = json.dumps({"serverContent": {"modelTurn": {"role": "model", "parts": [{"inlineData": BLOB}]}}})


async def live(socket: ServerConnection) -> None:
    counted = 0
    async for message in socket:
        # Parsing every audio frame would make the server the slower side.
        begin = str(message[:40])
        if '"audio"' in begin:
            counted += 1
            if counted % FRAMES == 0:
                for kind in ("ACTIVITY_START", "ACTIVITY_END"):
                    await send(socket, voiceActivity={"voiceActivityType": kind})
        elif '"setup"' in begin:
            await send(socket, setupComplete={})
        elif '"client_content"' in begin:
            for _ in range(FRAMES):
                await socket.send(SPEECH.encode())
            await send(socket, serverContent={"turnComplete": True})


async def send(socket: ServerConnection, **message: Any) -> None:
    await socket.send(json.dumps(message).encode())


async def meet(socket: ServerConnection) -> None:
    assert socket.request is not None
    await (plain(socket) if socket.request.path == "/plain" else live(socket))


async def main(folder: Path) -> None:
    authority = trustme.CA()
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(shown)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    async with serve(meet, "127.0.0.1", 0, ssl=shown, compression=None, max_size=None) as server:
        print(next(iter(server.sockets)).getsockname()[1], folder / "ca.pem", flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(main(Path(made)))
