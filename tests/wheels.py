"""Wheels of several projects, built in one process: `python wheels.py FOLDER PROJECT ...` prints their paths.

A frontend starts Python twice for each project, which takes much longer than the builds.
"""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
from pathlib import Path


def build_wheels(into: Path, projects: list[Path]) -> list[Path]:
    """Build wheels with the backends that the projects name, from the packages of this process."""
    wheels = []
    for project in projects:
        # A backend builds the project in the working folder.
        os.chdir(project)
        system = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["build-system"]
        backend = importlib.import_module(system["build-backend"])
        wheels.append(into / backend.build_wheel(str(into)))
    return wheels


if __name__ == "__main__":
    print(*build_wheels(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]]), sep="\n")
