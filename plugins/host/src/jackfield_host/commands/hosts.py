"""`jackfield hosts`: lists the hosts that share the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from jackfield_cli.options import as_json, with_registry
from jackfield_cli.store_access import with_store
from jackfield_cli.terminal import print_json

if TYPE_CHECKING:
    from jackfield.host_reports import HostReport
    from jackfield.settings import Settings
    from jackfield.store import Store


@click.command()
@with_registry
@as_json
def hosts(settings: Settings, as_json: bool) -> None:
    """List the hosts that share the store, with each host's status.

    Works while the hosts are running. A host that was killed stays in the list for 10 minutes, marked as
    silent and with its last values; the totals exclude it.
    """
    from jackfield_host.endpoints.hosts import host_wire, sums

    async def read(store: Store) -> tuple[list[HostReport], float]:
        from jackfield.host_reports import read_reports

        return await read_reports(store), store.now()

    reports, now = with_store(settings, read)
    reports.sort(key=lambda each: (each.name, each.id))
    totals = sums([each for each in reports if not each.is_silent(now)])
    if as_json:
        print_json({"hosts": [host_wire(each, now) for each in reports], "sums": totals})
        return
    _print_table(reports, now)
    count, sessions = totals["hosts"], totals["sessions"]
    click.echo(
        f"total of {count} host{'' if count == 1 else 's'}: "
        f"{sessions} session{'' if sessions == 1 else 's'}, "
        f"{_rate(totals['callsPerSecond'])} calls per second"
    )


def _print_table(reports: list[HostReport], now: float) -> None:
    from jackfield_cli.terminal import print_table

    from jackfield_host.transcripts import format_time

    rows = [
        (
            each.name,
            each.address,
            "silent" if each.is_silent(now) else "draining" if each.draining else "serving",
            str(each.sessions),
            _rate(each.calls_per_second),
            format_time(each.started_at),
            each.registry,
            each.version,
        )
        for each in reports
    ]
    if rows:
        columns = ("host", "address", "state", "sessions", "calls/s", "started", "registry", "version")
        print_table(columns, rows)


def _rate(calls_per_second: float | None) -> str:
    return "unknown" if calls_per_second is None else f"{calls_per_second:.1f}"
