"""One distribution in an environment that holds nothing else: does it import, and pass its own tests?"""

from __future__ import annotations

import re
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from releases.building import run, uv, wheel_in
from releases.members import LOCK, Member, members

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
"""The package and what its entry points name must import; other modules may need one of its extras."""


@dataclass(frozen=True)
class Outcome:
    """How a distribution fared alone: what went wrong, or what its tests said last."""

    member: Member
    seconds: float
    said: str
    fault: str = ""


class Alone:
    """An empty environment for one distribution."""

    def __init__(self, member: Member, folder: Path, dist: Path) -> None:
        self._member = member
        self._folder = folder
        self._dist = dist
        self._python = folder / "environment" / "bin" / "python"

    def try_out(self) -> Outcome:
        """Install the wheel, import it, then run the tests of the source distribution."""
        began = time.monotonic()
        said, fault = "", ""
        try:
            said = self._tried()
        except Exception as error:  # noqa: BLE001 - told with the others, when all have been tried
            fault = str(error)
        else:
            shutil.rmtree(self._folder)
        return Outcome(self._member, time.monotonic() - began, said, fault)

    def _tried(self) -> str:
        self._folder.mkdir(parents=True)
        run(uv(), "venv", "--quiet", "--python", sys.executable, str(self._folder / "environment"))
        self._install(self._member.name)
        if not self._member.has_code:
            self._install(f"{self._member.name}[{','.join(self._member.extras)}]")
            return "installs, with every extra"
        waiting = self._modules_that_lack_something()
        self._install(f"{self._member.name}[test]")
        said = self._tested()
        if waiting:
            extras = ",".join(self._member.extras)
            self._install(f"{self._member.name}[{extras}]")
            if lacking := self._modules_that_lack_something():
                raise AssertionError(f"no dependency and no extra brings what these import: {lacking}")
        return said

    def _install(self, requirement: str) -> None:
        constraints = self._folder / "constraints.txt"
        constraints.write_text(
            "".join(f"{each.name} @ {wheel_in(self._dist, each).as_uri()}\n" for each in members()), "utf-8"
        )
        run(
            uv(), "pip", "install", "--quiet", "--python", str(self._python), "--no-config",
            "--constraints", str(constraints), "--constraints", str(LOCK), requirement,
        )  # fmt: skip
        self._refuse_what_nobody_pinned()

    def _refuse_what_nobody_pinned(self) -> None:
        pinned = {
            canonicalize_name(name)
            for name in re.findall(r"^([\w.-]+)==", LOCK.read_text("utf-8"), re.MULTILINE)
        }
        pinned |= {canonicalize_name(each.name) for each in members()}
        listed = run(uv(), "pip", "freeze", "--quiet", "--python", str(self._python))
        found = {canonicalize_name(re.split(r"[ =@]", line)[0]) for line in listed.splitlines() if line}
        if found - pinned:
            raise AssertionError(f"requirements.lock does not pin {', '.join(sorted(found - pinned))}")

    def _modules_that_lack_something(self) -> list[str]:
        return run(
            str(self._python), "-I", "-c", IMPORT_ALL, self._member.package, *self._member.entry_points
        ).splitlines()

    def _tested(self) -> str:
        (sdist,) = self._dist.glob(f"{self._member.stem}-*.tar.gz")
        shutil.unpack_archive(sdist, self._folder, filter="data")
        project = self._folder / sdist.name.removesuffix(".tar.gz")
        # The package must come from the wheel, not from the folder beside the tests.
        shutil.rmtree(project / "src")
        said = run(
            str(self._python), "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider",
            "--import-mode=importlib", "-W", "error", "-o", "xfail_strict=true", "--strict-markers", "tests",
            cwd=project, seconds=1500,
        )  # fmt: skip
        return said.splitlines()[-1]
