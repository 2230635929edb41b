"""Installs one distribution into an empty environment, imports its modules and runs its tests."""

from __future__ import annotations

import re
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from releases.commands import run, uv, wheel_in
from releases.members import LOCK, WorkspaceMember, members

IMPORT_ALL = """
import importlib, pkgutil, sys
package, *targets = sys.argv[1:]
for target in (package, *targets):
    importlib.import_module(target.partition(":")[0])
for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
    if not found.name.endswith(".__main__"):
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            print(found.name, error.name)
"""
"""Imports the package and its entry points, which must work; prints other modules that need an extra."""


@dataclass(frozen=True)
class InstallResult:
    """The result of an isolated install: the error, or the last line of the test run."""

    member: WorkspaceMember
    seconds: float
    summary: str
    fault: str = ""


class IsolatedInstall:
    """An empty environment for one distribution."""

    def __init__(self, member: WorkspaceMember, folder: Path, dist: Path) -> None:
        self._member = member
        self._folder = folder
        self._dist = dist
        self._python = folder / "environment" / "bin" / "python"

    def test(self) -> InstallResult:
        """Install the wheel, import it, then run the tests of the source distribution."""
        started = time.monotonic()
        summary, fault = "", ""
        try:
            summary = self._run_tests_alone()
        except Exception as error:  # noqa: BLE001 - reported with the faults of the other distributions
            fault = str(error)
        else:
            shutil.rmtree(self._folder)
        return InstallResult(self._member, time.monotonic() - started, summary, fault)

    def _run_tests_alone(self) -> str:
        self._folder.mkdir(parents=True)
        run(uv(), "venv", "--quiet", "--python", sys.executable, str(self._folder / "environment"))
        self._install(self._member.name)
        if not self._member.has_code:
            self._install(f"{self._member.name}[{','.join(self._member.extras)}]")
            return "installs with every extra"
        incomplete = self._modules_with_missing_imports()
        self._install(f"{self._member.name}[test]")
        summary = self._run_tests()
        if incomplete:
            extras = ",".join(self._member.extras)
            self._install(f"{self._member.name}[{extras}]")
            if missing := self._modules_with_missing_imports():
                raise AssertionError(f"no dependency and no extra provides the imports of: {missing}")
        return summary

    def _install(self, requirement: str) -> None:
        constraints = self._folder / "constraints.txt"
        constraints.write_text(
            "".join(f"{each.name} @ {wheel_in(self._dist, each).as_uri()}\n" for each in members()), "utf-8"
        )
        run(
            uv(), "pip", "install", "--quiet", "--python", str(self._python), "--no-config",
            "--constraints", str(constraints), "--constraints", str(LOCK), requirement,
        )  # fmt: skip
        self._check_pins()

    def _check_pins(self) -> None:
        pinned = {
            canonicalize_name(name)
            for name in re.findall(r"^([\w.-]+)==", LOCK.read_text("utf-8"), re.MULTILINE)
        }
        pinned |= {canonicalize_name(each.name) for each in members()}
        if unpinned := self._installed() - pinned:
            raise AssertionError(f"requirements.lock does not pin {', '.join(sorted(unpinned))}")

    def _installed(self) -> set[str]:
        listed = run(uv(), "pip", "freeze", "--quiet", "--python", str(self._python))
        return {canonicalize_name(re.split(r"[ =@]", line)[0]) for line in listed.splitlines() if line}

    def _modules_with_missing_imports(self) -> list[str]:
        return run(
            str(self._python), "-I", "-c", IMPORT_ALL, self._member.package, *self._member.entry_points
        ).splitlines()

    def _run_tests(self) -> str:
        (sdist,) = self._dist.glob(f"{self._member.stem}-*.tar.gz")
        shutil.unpack_archive(sdist, self._folder, filter="data")
        project = self._folder / sdist.name.removesuffix(".tar.gz")
        # The package must come from the wheel, not from the source folder next to the tests.
        shutil.rmtree(project / "src")
        # Without a deadline for each example, because the machine may be busy with another distribution.
        profile = ["--hypothesis-profile=ci"] if "hypothesis" in self._installed() else []
        output = run(
            str(self._python), "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", *profile,
            "--import-mode=importlib", "-W", "error", "-o", "xfail_strict=true", "--strict-markers", "tests",
            cwd=project, seconds=1500,
        )  # fmt: skip
        return output.splitlines()[-1]
