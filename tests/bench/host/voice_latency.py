"""Time until the local agent's router speaks after a spoken question, over a WebSocket."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from jackfield_client import connect
from jackfield_client.messages import AudioChunk, SpeechStopped, TurnComplete
from jackfield_client.session import ClientSession
from jackfield_local.voice.engines import load_engines, missing_packages

from bench.host.processes import running
from bench.report import Report, RunOptions, Table

SPOKEN = Table(
    "spoken",
    "The agent on this machine",
    "to the first sound of the answer, from",
    {"p50, ms": ".0f", "p95, ms": ".0f", "slowest, ms": ".0f"},
)
QUESTIONS = (
    "What time is it in Tokyo?",
    "Hello, who are you?",
    "What is the date in New York?",
    "Thank you very much.",
    "What can you do for me?",
    "What time is it in London?",
)
ROUNDS = 3
FRAME = 960
FRAME_SECONDS = 0.02
SILENCE = 50
"""The amplitude above which a sample is audible."""


def run(report: Report, _: RunOptions) -> None:
    if lacking := missing_packages():
        report.note(SPOKEN.section, f"Spoken questions left out; not installed: {', '.join(lacking)}.")
        return
    # Whether or not a language model has been downloaded.
    with (
        tempfile.TemporaryDirectory() as folder,
        running("bench.host.jackfield_host", Path(folder), {"JACKFIELD_LOCAL_MODEL": "none"}) as host,
    ):
        waits, stopped = asyncio.run(_measured(f"http://127.0.0.1:{host.port}"))
    caption = (
        f"{len(waits)} spoken questions to the router over a WebSocket; the silence that ends a turn lasts "
        "224 (after a question) to 500 ms."
    )
    rows = {"the last audible sound": _row(waits), "the end of the turn": _row(stopped)}
    report.table(SPOKEN, caption, rows)


def _row(seconds: list[float]) -> list[float]:
    percentiles = statistics.quantiles(seconds, n=100, method="inclusive")
    return [1000 * each for each in (percentiles[49], percentiles[94], max(seconds))]


async def _measured(url: str) -> tuple[list[float], list[float]]:
    sounds = [await asyncio.to_thread(_spoken, words) for words in QUESTIONS]
    waits, stopped = [], []
    async with connect(url, mode="voice") as session:
        for sound in sounds * ROUNDS:
            waited, after_stop = await _asked(session, sound)
            waits.append(waited)
            stopped.append(after_stop)
    # The first run loads the models.
    return waits[1:], stopped[1:]


def _spoken(words: str) -> bytes:
    import numpy as np

    pcm = load_engines().synthesise(words)
    loud = np.flatnonzero(np.abs(np.frombuffer(pcm, np.int16)) > SILENCE)
    return pcm[: (int(loud[-1]) + 1) * 2]


async def _asked(session: ClientSession, sound: bytes) -> tuple[float, float]:
    ended = asyncio.get_running_loop().create_future()
    speaking = asyncio.create_task(_speak(session, sound, ended))
    first = stop = 0.0
    try:
        async for message in session:
            if isinstance(message, SpeechStopped):
                stop = time.perf_counter()
            elif isinstance(message, AudioChunk):
                first = first or time.perf_counter()
                await session.report_playback(message.item, 3_600_000)
            elif isinstance(message, TurnComplete):
                break
        return first - await ended, first - stop
    finally:
        speaking.cancel()


async def _speak(session: ClientSession, sound: bytes, ended: asyncio.Future[float]) -> None:
    """Send the audio in real time, followed by endless silence."""
    began, sent = time.perf_counter(), 0
    while True:
        frame = sound[sent * FRAME : (sent + 1) * FRAME].ljust(FRAME, b"\0")
        await session.send_audio(frame)
        sent += 1
        if sent * FRAME >= len(sound) and not ended.done():
            ended.set_result(time.perf_counter())
        await asyncio.sleep(max(0.0, began + sent * FRAME_SECONDS - time.perf_counter()))
