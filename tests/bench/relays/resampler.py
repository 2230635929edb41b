"""The share of resampling from 24 to 16 kHz in the transport to Gemini."""

from __future__ import annotations

import json
import time

from jackfield_gemini.live.audio import SpeechResampler

from bench.relays.workload import FRAME, FRAMES


def main() -> None:
    resampler = SpeechResampler()
    taken = 0.0
    # The first pass is a warm-up.
    for _ in range(2):
        began = time.process_time()
        for _ in range(FRAMES):
            resampler.feed(FRAME)
        taken = time.process_time() - began
    print(json.dumps({"us": taken / FRAMES * 1e6}))


if __name__ == "__main__":
    main()
