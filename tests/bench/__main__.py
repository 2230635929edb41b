"""Run the benchmarks, print the results as Markdown, and write them with their plots to a folder."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

from bench import cpu_time, plots, published, report_files
from bench.benchmarks import BENCHMARKS, Benchmark
from bench.report import Duration, Report, RunOptions
from bench.subprocesses import ProgramError

IMAGES = Path(__file__).parents[2] / "docs" / "images"


def main() -> int:
    options = _options()
    asked, report, facts = RunOptions(options.rounds, options.full), Report(), report_files.machine()
    for name in _parts(options):
        report.spent.append(_run(name, BENCHMARKS[name], report, asked))
        # After every benchmark, so that an interrupted run keeps its results.
        report_files.write(report, options.report, facts, asked)
    print(f"## Time\n\n{report_files.times(report)}")
    failed = [f"{each.part}: {each.failure}" for each in report.spent if each.failure]
    try:
        drawn = plots.draw(report.tables, options.report)
    except ModuleNotFoundError as absent:
        drawn = []
        failed.append(f"plots: {absent}; `nox -s bench` installs what is missing")
    written = ["benchmarks.md", "figures.json", *(plot.name for plot in drawn)]
    print(f"{options.report}: {', '.join(written)}")
    if options.update_docs:
        for plot in drawn:
            shutil.copyfile(plot, IMAGES / f"bench-{plot.name}")
        for path in published.update(report, facts, asked):
            print(f"updated: {path}")
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s bench --", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"what to measure: {', '.join(BENCHMARKS)} (default: all but instructions)",
    )
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds to run (default: 5)")
    parser.add_argument(
        "--full",
        action="store_true",
        help="run the slow measurements too: a million records, 10,000 sessions, ...",
    )
    parser.add_argument(
        "--instructions",
        action="store_true",
        help="also count the instructions of a governed call with valgrind",
    )
    parser.add_argument(
        "--report",
        type=Path,
        default=Path("bench-report"),
        metavar="FOLDER",
        help="where the report goes (default: bench-report)",
    )
    parser.add_argument(
        "--update-docs",
        action="store_true",
        help="write the tables and plots of this run into docs/benchmarks*.md and README.md",
    )
    options = parser.parse_args()
    if unknown := set(options.parts) - set(BENCHMARKS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    if options.rounds < 1:
        parser.error("there has to be a round at least")
    return options


def _parts(options: argparse.Namespace) -> list[str]:
    """Return the parts to run, in the order of the benchmarks."""
    asked = {name for name, each in BENCHMARKS.items() if not each.on_request}
    if options.parts:
        asked = set(options.parts)
    if options.instructions:
        asked.add("instructions")
    return [name for name in BENCHMARKS if name in asked]


def _run(name: str, part: Benchmark, report: Report, asked: RunOptions) -> Duration:
    """Run a benchmark; a failure is reported, and the others continue."""
    began, used, failure = time.perf_counter(), cpu_time.spent(), None
    try:
        part.run(report, asked)
    except ProgramError as error:
        failure = str(error)
    except subprocess.CalledProcessError as error:
        failure = f"{error}\n{error.stderr.decode() if isinstance(error.stderr, bytes) else error.stderr}"
    except Exception as error:  # noqa: BLE001 - whatever it is, the other parts are still to be measured
        failure = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    spent = Duration(name, time.perf_counter() - began, cpu_time.spent() - used, failure)
    print(f"{name}: {spent.seconds:.0f} s, {spent.cpu_seconds:.0f} s of CPU\n", flush=True)
    if failure:
        print(f"{name} failed: {failure}", file=sys.stderr, flush=True)
    return spent


if __name__ == "__main__":
    sys.exit(main())
