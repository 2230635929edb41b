"""Voice sessions from audio files: the files replace the microphone, and playback is simulated."""

SAMPLE_RATE = 24_000
"""Samples per second in the protocol; PCM16, mono."""

BYTES_PER_MS = 2 * SAMPLE_RATE // 1000

FRAME_MS = 20
"""Milliseconds of audio in a frame."""
