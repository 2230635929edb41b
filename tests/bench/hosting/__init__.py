"""What a host costs beside the barest programs that could stand in its place."""

from __future__ import annotations


def run(rounds: int) -> None:
    from bench.hosting import idle, sound, spoken, words

    rounds = min(rounds, 5)
    sound.run(rounds)
    words.run(rounds)
    spoken.run()
    idle.run()
