"""Run the measurements and print them as Markdown."""

from __future__ import annotations

import argparse

from bench import building, governed, hosting, relay, retrieval, start

PARTS = {
    "start": start.run,
    "building": building.run,
    "governed": governed.run,
    "retrieval": retrieval.run,
    "relay": relay.run,
    "hosting": hosting.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="nox -s bench --", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"what to measure: {', '.join(PARTS)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=7, help="how often each command runs (default: 7)")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    for name in options.parts or PARTS:
        PARTS[name](options.rounds)


if __name__ == "__main__":
    main()
