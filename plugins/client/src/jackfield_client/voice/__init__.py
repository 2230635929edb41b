"""Voice from sound files: a microphone that reads them, and a loudspeaker that only reports."""

RATE = 24_000
"""Samples a second of the protocol; PCM16, mono."""

BYTES_PER_MS = 2 * RATE // 1000

FRAME_MS = 20
"""How much sound goes into a frame."""
