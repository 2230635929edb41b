"""Opening a Realtime session; whatever goes wrong before it stands is a `TransportError`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from jackfield.transport.protocol import Opening, TransportError
from openai import OpenAIError
from websockets.exceptions import ConnectionClosed, WebSocketException

from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.faults import of_sdk, told, trouble_of_end
from jackfield_openai.options import Options
from jackfield_openai.realtime.connection import BesideConnection, RealtimeConnection
from jackfield_openai.realtime.reading import Reading
from jackfield_openai.realtime.session import beside_session, voice_session

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_SOCKET: Any = {
    # Of 100 ms each: a reader may fall behind by some 100 s before the server has to wait.
    "max_queue": 1024,
    "max_size": 1 << 24,
    "compression": None,
    # Pongs wait behind the sound that a slow reader has not taken yet.
    "ping_timeout": 60,
    "close_timeout": 1,
    # The setting `connect_timeout` holds for the handshake and the session together.
    "open_timeout": None,
}


async def open_line(client: AsyncOpenAI, options: Options, opening: Opening) -> RealtimeConnection:
    """A session that carries the sound."""
    tools = DeclaredTools(opening.declarations)
    line = _Line(RealtimeConnection, {"model": options.voice_model}, tools)
    return await _opened(client, options, opening, line, voice_session(opening, options, tools))


async def open_beside(
    client: AsyncOpenAI, options: Options, opening: Opening, call_id: str
) -> RealtimeConnection:
    """A connection to the session of a browser's call."""
    tools = DeclaredTools(opening.declarations)
    line = _Line(BesideConnection, {"call_id": call_id}, tools)
    return await _opened(client, options, opening, line, beside_session(opening, tools))


class _Line(NamedTuple):
    kind: type[RealtimeConnection]
    address: dict[str, Any]
    tools: DeclaredTools


async def _opened(
    client: AsyncOpenAI, options: Options, opening: Opening, line: _Line, session: dict[str, Any]
) -> RealtimeConnection:
    try:
        async with asyncio.timeout(options.connect_timeout):
            manager = client.realtime.connect(websocket_connection_options=_SOCKET, **line.address)
            socket = await manager.enter()
            renew_after = 60 * options.renew_after_minutes
            reading = Reading(line.tools, limited=bool(opening.answer_tokens))
            language = opening.voice.language
            connection = line.kind(socket, reading, renew_after=renew_after, language=language)
            try:
                await connection.begin(session, opening.history)
            except BaseException:
                await asyncio.shield(connection.close())
                raise
    except TimeoutError:
        detail = f"the session did not stand within {options.connect_timeout:g} s"
        raise TransportError("network", detail) from None
    except (OpenAIError, WebSocketException, OSError, ValueError) as error:
        raise _of_socket(error) from None
    return connection


def _of_socket(error: Exception) -> TransportError:
    if isinstance(error, ConnectionClosed):
        number, reason = (error.rcvd.code, error.rcvd.reason) if error.rcvd else (None, "")
        return TransportError(trouble_of_end(number, reason), told(reason))
    return of_sdk(error)
