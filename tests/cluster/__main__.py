"""Run a cluster on this machine, look at it, and break it on purpose."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from faults.report import broken

from cluster import chaos, report, service_times
from cluster.cluster import Cluster, running
from cluster.view import View

CAMPAIGN = chaos.Scale(calls=10_000, deliveries=10, kills=200, crashes=20, failovers=10)
CAMPAIGN_HOSTS = 4


def main() -> int:
    options = parse_options(sys.argv[1:])
    if options.measure:
        times = asyncio.run(service_times.measure())
        times.write()
        print(f"{service_times.summary(times)}\n\nwritten to {service_times.FILE}")
        return 0
    folder = options.keep or Path(tempfile.mkdtemp(prefix="jackfield-cluster-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        status = asyncio.run(_run(options, folder))
    except KeyboardInterrupt:
        status = 0
    except RuntimeError as error:
        print(f"Error: {error}", file=sys.stderr)
        status = 1
    if status:
        print(f"the logs, the settings and the effects are in {folder}", file=sys.stderr)
    elif not options.keep:
        shutil.rmtree(folder)
    return status


async def _run(options: argparse.Namespace, folder: Path) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    working = asyncio.current_task()

    def stop() -> None:
        # Once: a second Ctrl-C must not interrupt the clean-up.
        if not stopping.is_set() and working is not None:
            stopping.set()
            print("\nstopping", flush=True)
            working.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    print(f"starting {options.hosts} hosts on {options.store} ...", flush=True)
    try:
        async with running(folder, hosts=options.hosts, store=options.store) as cluster:
            _describe(cluster)
            if options.chaos or options.campaign:
                return await _break(cluster, options)
            await _show(cluster, options.seconds)
    except asyncio.CancelledError:
        if not stopping.is_set():
            raise
    return 0


def _describe(cluster: Cluster) -> None:
    print(f"cluster   {cluster.proxy.url} (nginx)")
    print(f"key       {cluster.deployment.key}")
    for host in cluster.hosts:
        print(f"host {host.number}    http://127.0.0.1:{host.port}, log {host.log}")
    if cluster.database is not None:
        print(f"database  {cluster.database.url} (primary and synchronous standby)")
    print(f"try       curl -H 'Authorization: Bearer {cluster.deployment.key}' {cluster.proxy.url}/status")
    print("Ctrl-C stops everything\n", flush=True)


async def _show(cluster: Cluster, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds or None):
            await View(cluster).run()


async def _break(cluster: Cluster, options: argparse.Namespace) -> int:
    scale = scale_of(options)
    wanted = f"{scale.calls} calls" if scale.calls else f"{scale.seconds:g} s of calls"
    print(
        f"{wanted}, {scale.deliveries} deliveries each, {scale.kills} kills, {scale.crashes} crashes, "
        f"{scale.failovers} failovers, seed {scale.seed}",
        flush=True,
    )
    result = await chaos.run(cluster, scale, lambda text: print(text, flush=True))
    print(f"\n{report.table(result)}\n", flush=True)
    if options.write:
        report.write(result)
        print(f"written to {report.PAGE}")
    if result.faults:
        print(f"{len(result.faults)} faults:\n{broken(result.faults)}", file=sys.stderr)
        return 1
    return 0


def scale_of(options: argparse.Namespace) -> chaos.Scale:
    """Return the size of the run that the options ask for."""
    base = CAMPAIGN if options.campaign else chaos.Scale()
    given = {
        name: getattr(options, name)
        for name in ("calls", "seconds", "deliveries", "kills", "crashes", "failovers", "callers")
        if getattr(options, name) is not None
    }
    return replace(base, seed=options.seed, **given)


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="nox -s cluster --", description=__doc__)
    add = parser.add_argument
    add("--hosts", type=int, help=f"host processes (default: 3; {CAMPAIGN_HOSTS} for --campaign)")
    add("--store", choices=["postgres", "sqlite"], default="postgres", help="what the hosts share")
    add("--seconds", type=float, help="how long to run (default: until Ctrl-C; 60 for --chaos)")
    add("--chaos", action="store_true", help="kill hosts and the database under load, and check every answer")
    add("--campaign", action="store_true", help="the same until 10,000 calls were made; takes a long time")
    add("--kills", type=int, help="kills of hosts (default: 10; 200 for --campaign)")
    add("--crashes", type=int, help="immediate shutdowns of the database (default: 2; 20 for --campaign)")
    add("--failovers", type=int, help="promotions of the standby (default: 1; 10 for --campaign)")
    add("--calls", type=int, help="stop after this many calls instead of after a time")
    add("--deliveries", type=int, help="how often each call is delivered (default: 10)")
    add("--callers", type=int, help="calls at the same time (default: 12)")
    add("--measure", action="store_true", help="measure what calls and messages cost, for the capacity model")
    add("--seed", type=int, default=secrets.randbelow(10**6), help="of all random choices (default: random)")
    add("--keep", type=Path, metavar="FOLDER", help="an empty folder to work in, and to keep")
    add("--write", action="store_true", help="write the result into docs/reliability.md")
    options = parser.parse_args(arguments)
    if options.hosts is None:
        options.hosts = CAMPAIGN_HOSTS if options.campaign else 3
    if options.hosts < 1:
        parser.error("--hosts: a cluster needs at least one host")
    counts = (options.kills, options.crashes, options.failovers, options.calls, options.seconds)
    if any(each is not None and each < 0 for each in counts):
        parser.error("counts and seconds must not be negative")
    if any(each is not None and each < 1 for each in (options.deliveries, options.callers)):
        parser.error("--deliveries and --callers are at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
