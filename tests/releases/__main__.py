"""Builds every distribution into dist/, checks it, and tries it alone: `nox -s dists [-- NAME ...]`."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from releases.alone import Alone, Outcome
from releases.building import CommandFailedError, build, build_wheel_from_tree, run
from releases.contents import faults_between, faults_of_sdist, faults_of_wheel
from releases.members import ROOT, Member, members

DIST = ROOT / "dist"
AT_A_TIME = 2


def main(names: list[str]) -> int:
    """Build all, try those that were named, or all."""
    chosen = _chosen(names)
    began = time.monotonic()
    faults = _built()
    _say(f"built {len(members())} distributions in {time.monotonic() - began:.0f} s")
    faults += _checked()
    if not faults:
        with tempfile.TemporaryDirectory(prefix="jackfield-dists-") as folder:
            faults = _tried(chosen, Path(folder))
    for fault in faults:
        _say(fault)
    spent = os.times()
    cpu = spent.children_user + spent.children_system
    _say(f"{len(faults)} faults, {time.monotonic() - began:.0f} s, of which computing {cpu:.0f} s")
    return 1 if faults else 0


def _chosen(names: list[str]) -> list[Member]:
    """The members of these names, of distribution or folder; whose tests are longest go first."""
    known = {name: each for each in members() for name in (each.name, each.folder.name)}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no distribution is called {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    chosen = {known[name].name: known[name] for name in names} if names else {m.name: m for m in members()}
    return sorted(chosen.values(), key=_size_of_tests, reverse=True)


def _size_of_tests(member: Member) -> int:
    return sum(path.stat().st_size for path in (member.folder / "tests").rglob("*.py"))


def _built() -> list[str]:
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("jackfield_*"):
        old.unlink()
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        return [fault for faults in threads.map(_faults_of, members()) for fault in faults]


def _faults_of(member: Member) -> list[str]:
    try:
        sdist, wheel = build(member, DIST)
        with tempfile.TemporaryDirectory() as folder:
            direct = build_wheel_from_tree(member, Path(folder))
            between = list(faults_between(direct, wheel))
    except CommandFailedError as error:
        return [str(error)]
    return [*faults_of_sdist(member, sdist), *faults_of_wheel(member, wheel), *between]


def _checked() -> list[str]:
    wheels = sorted(map(str, DIST.glob("jackfield_*.whl")))
    sdists = sorted(map(str, DIST.glob("jackfield_*.tar.gz")))
    faults = []
    for command in (("twine", "check", "--strict", *wheels, *sdists), ("check-wheel-contents", *wheels)):
        try:
            run(str(Path(sys.executable).with_name(command[0])), *command[1:])
        except CommandFailedError as error:
            faults.append(str(error))
    return faults


def _tried(chosen: list[Member], folder: Path) -> list[str]:
    def trial(member: Member) -> Outcome:
        outcome = Alone(member, folder / member.folder.name, DIST).try_out()
        # A fault is told at once: the others may take a while.
        _say(f"{member.name}: {outcome.fault or outcome.said} ({outcome.seconds:.0f} s in all)")
        return outcome

    with ThreadPoolExecutor(AT_A_TIME) as threads:
        outcomes = list(threads.map(trial, chosen))
    return [f"{each.member.name} does not stand alone" for each in outcomes if each.fault]


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
