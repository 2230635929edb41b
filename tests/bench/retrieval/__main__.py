"""The same with the sizes as an option: `python -m bench.retrieval --records 100000 --records 1000000`."""

from __future__ import annotations

import argparse

from bench.retrieval import quality, speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--records", type=int, action="append", help="size of a library (default: 100000)")
    parser.add_argument("--no-quality", action="store_true", help="speed alone")
    options = parser.parse_args()
    if not options.no_quality:
        quality.run()
    for count in options.records or (100_000,):
        speed.run(options.rounds, count)


if __name__ == "__main__":
    main()
