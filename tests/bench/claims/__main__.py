"""Score claim checking on transcripts and list what it marks; the last line has the figures as JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from bench.claims import transcripts
from bench.claims.agent_answers import marked_answers
from bench.claims.scoring import score

COLLECTIONS = {
    "GPT-4o as an airline's agent (tau-bench)": (transcripts.tau_bench, "tau"),
    "Schema-Guided Dialogue": (transcripts.schema_guided, "sgd"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.claims", description=__doc__)
    parser.add_argument("--part", choices=("development", "held-out"), default="development")
    parser.add_argument("--data", type=Path, help="the folder with the transcripts")
    parser.add_argument("--agent", action="store_true", help="also hold the agent bench's conversations")
    options = parser.parse_args()
    if options.data is not None:
        transcripts.DATA = options.data
    rows: dict[str, list[float]] = {}
    for title, (read, name) in COLLECTIONS.items():
        for says, phrases in (("`says`", name), ("summaries only", None)):
            found = score(read(options.part), phrases)
            if not found.messages:
                continue
            rows[f"{title}, {says}, {options.part}"] = found.row()
            for conversation, claim in found.marked:
                print(f"{title}, {says}: {conversation}: {claim}", file=sys.stderr)
    if options.agent:
        answers, marked = asyncio.run(marked_answers(options.part))
        rows[f"the local agent, {options.part}"] = [answers, len(marked), 0, 0, 0]
        print(*marked, sep="\n", file=sys.stderr)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
