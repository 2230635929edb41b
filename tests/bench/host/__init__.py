"""Cost of a host compared with minimal programs."""

from __future__ import annotations

from bench.host import audio, endpoints, execute, idle_sessions, idle_sockets, text_latency
from bench.report import Report, RunOptions

TABLES = (
    audio.HOST,
    audio.MANY,
    audio.LOAD,
    endpoints.ENDPOINTS,
    execute.EXECUTE,
    execute.EXECUTE_MEMORY,
    text_latency.WAITS,
    idle_sessions.MEMORY,
    idle_sessions.CHURNED,
    idle_sockets.IDLE_SOCKETS,
)


def run(report: Report, asked: RunOptions) -> None:
    audio.run(report, asked)
    endpoints.run(report, asked)
    execute.run(report, asked)
    text_latency.run(report, asked)
    idle_sessions.run(report, asked)
    idle_sockets.run(report, asked)
