"""Talks to the host from inside the container: `image.py` sends this file to the image's Python.

The arguments are the host's address and, to resume a session, what the first run printed: the session's token
and its last event. The key is in the variable `KEY`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.request
from typing import Any

from jackfield_client import ChatMessage, ToolComplete, TurnComplete, connect


def request(url: str, key: str, body: dict[str, Any] | None = None) -> tuple[str, str]:
    """Return the media type and the body of a response."""
    asked = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=30) as response:
        return response.headers.get_content_type(), response.read().decode()


async def converse(url: str, key: str, token: str | None = None, last_event: str = "0") -> str:
    """Have the model call a tool in a new or resumed session; return its token and last event."""
    async with connect(url, token=key, resume=token, last_event=int(last_event)) as session:
        assert session.info.resumed == bool(token), session.info
        await session.send_text("What time is it in Tokyo?")
        tools, texts = [], []
        async for message in session:
            match message:
                case ToolComplete():
                    tools.append(message.tool)
                case ChatMessage():
                    texts.append(message.text)
                case TurnComplete() if tools:
                    break
        assert tools == ["format_datetime"], tools
        assert ":" in texts[-1], texts
        return f"{session.info.token} {session.last_event}"


async def main(url: str, *saved: str) -> None:
    """Check the console page, a call without a session, and a conversation."""
    key = os.environ["KEY"]
    media_type, page = request(f"{url}/", key)
    assert media_type == "text/html", media_type
    assert "Jackfield" in page, page[:200]
    _, answer = request(f"{url}/execute/format_datetime", key, {"arguments": {"timezone": "Asia/Tokyo"}})
    assert json.loads(answer)["envelope"]["ok"], answer
    async with asyncio.timeout(60):
        print(await converse(url, key, *saved))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
