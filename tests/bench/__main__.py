"""Run the measurements, print them as Markdown, and lay them with their plots into a folder."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

from bench import clock, plots, writing
from bench.parts import PARTS, Part
from bench.programs import ProgramError
from bench.recording import Asked, Report, Spent

IMAGES = Path(__file__).parents[2] / "docs" / "images"


def main() -> int:
    options = _options()
    asked, report, facts = Asked(options.rounds, options.full), Report(), writing.machine()
    for name in options.parts or PARTS:
        report.spent.append(_run(name, PARTS[name], report, asked))
        # After every part, so that who breaks it off keeps what there is.
        writing.write(report, options.report, facts, asked)
    print(f"## Time\n\n{writing.times(report)}")
    failed = [f"{each.part}: {each.failure}" for each in report.spent if each.failure]
    try:
        drawn = plots.draw(report.tables, options.report)
    except ModuleNotFoundError as absent:
        drawn = []
        failed.append(f"plots: {absent}; `nox -s bench` installs what is missing")
    if options.update_docs:
        for plot in drawn:
            shutil.copyfile(plot, IMAGES / f"bench-{plot.name}")
    written = ["benchmarks.md", "figures.json", *(plot.name for plot in drawn)]
    print(f"{options.report}: {', '.join(written)}")
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s bench --", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"what to measure: {', '.join(PARTS)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often what is compared runs (default: 5)")
    parser.add_argument(
        "--full", action="store_true", help="the long form: a million records, 10,000 sessions, ..."
    )
    parser.add_argument(
        "--report",
        type=Path,
        default=Path("bench-report"),
        metavar="FOLDER",
        help="where the report goes (default: bench-report)",
    )
    parser.add_argument("--update-docs", action="store_true", help="copy the plots to docs/images as well")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.rounds < 1:
        parser.error("there has to be a round at least")
    return options


def _run(name: str, part: Part, report: Report, asked: Asked) -> Spent:
    """Run a part; one that fails says why, and the others go on."""
    began, used, failure = time.perf_counter(), clock.spent(), None
    try:
        part.run(report, asked)
    except ProgramError as error:
        failure = str(error)
    except subprocess.CalledProcessError as error:
        failure = f"{error}\n{error.stderr.decode() if isinstance(error.stderr, bytes) else error.stderr}"
    except Exception as error:  # noqa: BLE001 - whatever it is, the other parts are still to be measured
        failure = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    spent = Spent(name, time.perf_counter() - began, clock.spent() - used, failure)
    print(f"{name}: {spent.seconds:.0f} s, {spent.cpu_seconds:.0f} s of CPU\n", flush=True)
    if failure:
        print(f"{name} failed: {failure}", file=sys.stderr, flush=True)
    return spent


if __name__ == "__main__":
    sys.exit(main())
