"""What a host costs beside the barest programs that could stand in its place."""

from __future__ import annotations

from bench.hosting import crowd, idle, sound, words
from bench.recording import Asked, Report

TABLES = (sound.HOST, sound.MANY, words.WAITS, idle.MEMORY, idle.CHURNED, crowd.CROWD)


def run(report: Report, asked: Asked) -> None:
    sound.run(report, asked)
    words.run(report, asked)
    idle.run(report, asked)
    crowd.run(report, asked)
