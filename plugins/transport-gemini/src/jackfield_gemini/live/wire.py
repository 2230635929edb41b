"""Messages on and off the socket of a Live session.

What the SDK offers for it makes and checks objects for every message, also for speech, of which fifty come
and fifty go each second: it costs 68 us a frame on the way in and 63 us on the way out, where the message
itself takes 4 us and 2 us. It has no public way around that, so this module, and no other, uses its socket.
Everything that is not speech goes out by the SDK's own verbs.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from google.genai.live import AsyncSession

_AUDIO_HEAD = b'{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"'
_AUDIO_TAIL = b'"}}}'


class Wire:
    """One Live session, as messages."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self._socket = session._ws  # noqa: SLF001 - see above

    async def receive(self) -> dict[str, Any]:
        """The next message; `ConnectionClosed` at the end, `ValueError` or `TypeError` when it is none."""
        message = orjson.loads(await self._socket.recv(decode=False))
        if not isinstance(message, dict):
            raise TypeError("a message is an object")
        return message

    async def send_audio(self, pcm: bytes) -> None:
        """Speech of the user: PCM16, 16 kHz."""
        data = b2a_base64(pcm, newline=False)
        await self._socket.send(_AUDIO_HEAD + data + _AUDIO_TAIL, text=True)

    async def end_audio(self) -> None:
        """The microphone was closed; the model need not wait for a silence that will not come."""
        await self._session.send_realtime_input(audio_stream_end=True)

    async def send_turns(self, turns: Sequence[tuple[str, str]], *, answer: bool) -> None:
        """What was said, as roles and texts; `answer` has the model speak now."""
        content: list[Any] = [{"role": role, "parts": [{"text": text}]} for role, text in turns]
        await self._session.send_client_content(turns=content, turn_complete=answer)

    async def send_results(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Answers to calls, each with `id`, `name` and `response`."""
        await self._session.send_tool_response(function_responses=list(results))  # type: ignore[arg-type]

    async def close(self) -> None:
        """Hang up."""
        await self._session.close()
