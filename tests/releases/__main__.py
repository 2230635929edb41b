"""Builds every distribution into dist/, checks it, and tests it alone: `nox -s dists [-- NAME ...]`."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from releases.archives import sdist_faults, wheel_differences, wheel_faults
from releases.commands import CommandFailedError, build, build_wheel_from_tree, run
from releases.isolated_install import InstallResult, IsolatedInstall
from releases.members import ROOT, WorkspaceMember, members

DIST = ROOT / "dist"
MAX_THREADS = 2


def main(names: list[str]) -> int:
    """Build all distributions; test the named ones alone, or all."""
    chosen = _select(names)
    # A shell starts background jobs with SIGINT ignored, and tests that press Ctrl-C would wait forever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.monotonic()
    faults = _build_all()
    _print(f"built {len(members())} distributions in {time.monotonic() - started:.0f} s")
    faults += _check_archives()
    if not faults:
        with tempfile.TemporaryDirectory(prefix="jackfield-dists-") as folder:
            faults = _test_alone(chosen, Path(folder))
    for fault in faults:
        _print(fault)
    times = os.times()
    cpu = times.children_user + times.children_system
    _print(f"{len(faults)} faults, {time.monotonic() - started:.0f} s, {cpu:.0f} s of CPU time")
    return 1 if faults else 0


def _select(names: list[str]) -> list[WorkspaceMember]:
    """Return the members with these names of distributions or folders, those with the most tests first."""
    known = {name: each for each in members() for name in (each.name, each.folder.name)}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"unknown distribution {', '.join(unknown)}; choose from {', '.join(sorted(known))}")
    chosen = {known[name].name: known[name] for name in names} if names else {m.name: m for m in members()}
    return sorted(chosen.values(), key=_size_of_tests, reverse=True)


def _size_of_tests(member: WorkspaceMember) -> int:
    return sum(path.stat().st_size for path in (member.folder / "tests").rglob("*.py"))


def _build_all() -> list[str]:
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("jackfield_*"):
        old.unlink()
    with ThreadPoolExecutor(MAX_THREADS) as threads:
        return [fault for faults in threads.map(_build_and_check, members()) for fault in faults]


def _build_and_check(member: WorkspaceMember) -> list[str]:
    try:
        sdist, wheel = build(member, DIST)
        with tempfile.TemporaryDirectory() as folder:
            direct = build_wheel_from_tree(member, Path(folder))
            differences = list(wheel_differences(direct, wheel))
    except CommandFailedError as error:
        return [str(error)]
    return [*sdist_faults(member, sdist), *wheel_faults(member, wheel), *differences]


def _check_archives() -> list[str]:
    wheels = sorted(map(str, DIST.glob("jackfield_*.whl")))
    sdists = sorted(map(str, DIST.glob("jackfield_*.tar.gz")))
    faults = []
    for command in (("twine", "check", "--strict", *wheels, *sdists), ("check-wheel-contents", *wheels)):
        try:
            run(str(Path(sys.executable).with_name(command[0])), *command[1:])
        except CommandFailedError as error:
            faults.append(str(error))
    return faults


def _test_alone(chosen: list[WorkspaceMember], folder: Path) -> list[str]:
    def test(member: WorkspaceMember) -> InstallResult:
        result = IsolatedInstall(member, folder / member.folder.name, DIST).test()
        # Print a fault at once, because the other distributions may take a while.
        _print(f"{member.name}: {result.fault or result.summary} ({result.seconds:.0f} s)")
        return result

    with ThreadPoolExecutor(MAX_THREADS) as threads:
        results = list(threads.map(test, chosen))
    return [f"{each.member.name} fails in an empty environment" for each in results if each.fault]


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
