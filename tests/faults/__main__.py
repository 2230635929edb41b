"""Kill and pause real hosts in the middle of calls, and check every answer against the effect log."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from faults import report
from faults.campaign import Scale, run
from faults.database import Database

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def main() -> int:
    options = _options()
    scale = Scale(
        kills=options.kills,
        pauses=options.pauses,
        calls=options.calls,
        hosts=options.hosts,
        lanes=options.lanes,
        lease=options.lease,
        expiry=options.expiry,
        seed=options.seed,
    )
    # When stopped, it also stops its hosts.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    print(f"{scale.kills} kills, {scale.pauses} pauses, seed {scale.seed}", flush=True)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="jackfield-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as closing:
        store = None
        if options.store == "postgres":
            store = closing.enter_context(Database.temporary(standby=False)).store
        result = asyncio.run(run(folder, scale, lambda text: print(text, flush=True), store))
    print(f"\n{report.report(result)}\n")
    if options.write:
        report.write(result, PAGE)
        print(f"written to {PAGE}")
    if result.faults:
        print(f"{len(result.faults)} faults:\n{report.broken(result.faults)}", file=sys.stderr)
        print(f"the store, the logs and the effects are in {folder}", file=sys.stderr)
        return 1
    if not options.keep:
        shutil.rmtree(folder)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="nox -s faults --", description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    default = Scale()
    parser.add_argument("--kills", type=int, default=default.kills, help="rounds that kill a host")
    parser.add_argument("--pauses", type=int, default=default.pauses, help="rounds that pause a host")
    parser.add_argument("--calls", type=int, default=default.calls, help="calls in every round")
    parser.add_argument("--hosts", type=int, default=default.hosts, help="host processes, three or more")
    parser.add_argument("--lanes", type=int, default=default.lanes, help="rounds that run at the same time")
    parser.add_argument("--lease", type=float, default=default.lease, help="the lease during pauses, seconds")
    parser.add_argument(
        "--expiry", type=float, default=default.expiry, help="how long a call waits for its user, seconds"
    )
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite", help="the hosts' store")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="of all random choices")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="an empty folder to work in, and to keep")
    parser.add_argument("--write", action="store_true", help="write the result into docs/reliability.md")
    options = parser.parse_args()
    if options.hosts < 3:
        parser.error("it takes three hosts: one to strike, and two to ask")
    if options.write and options.store != "sqlite":
        parser.error(
            "the page shows the campaign on SQLite; `nox -s cluster -- --write` writes the other one"
        )
    if min(options.kills, options.pauses) < 0 or min(options.calls, options.lanes) < 1:
        parser.error("counts are positive")
    return options


if __name__ == "__main__":
    sys.exit(main())
