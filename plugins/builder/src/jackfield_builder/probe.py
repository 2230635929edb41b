"""Imports handlers in a process of its own, so that whatever they do at import is done to that process alone.

Reads a JSON request from standard input and writes one JSON line per module. A module that ends the process
leaves its "begin" line without a "result", by which the build knows who it was.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

SECONDS_PER_MODULE = 20


class Probe(NamedTuple):
    """A module to import, and the folders it needs on the path."""

    module: str
    path: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What became of an import; `kind` is imported, raised, died, missing (no execute) or uncallable."""

    kind: str
    message: str = ""
    line: int | None = None


def probe(modules: Sequence[Probe]) -> dict[str, Outcome]:
    """Import every module; start over behind one that takes the process with it."""
    outcomes: dict[str, Outcome] = {}
    remaining = list(modules)
    while remaining:
        request = {"path": sys.path, "modules": remaining, "seconds": SECONDS_PER_MODULE}
        child = subprocess.run(
            [sys.executable, "-m", "jackfield_builder.probe"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        begun = ""
        for line in child.stdout.splitlines():
            message = json.loads(line)
            begun = message["module"]
            if "outcome" in message:
                outcomes[begun] = Outcome(*message["outcome"])
        if not begun:
            raise RuntimeError(f"the probe did not start: {child.stderr.strip()[-2000:]}")
        # An exit hook of a module imported earlier may also end the process badly; then all have an outcome.
        outcomes.setdefault(begun, Outcome("died", _death(child.returncode)))
        remaining = [each for each in remaining if each.module not in outcomes]
    return outcomes


def _death(returncode: int) -> str:
    if returncode == -signal.SIGALRM:
        return f"it took longer than {SECONDS_PER_MODULE} s"
    if returncode < 0:
        return f"the process was ended by {signal.Signals(-returncode).name}"
    return f"it ended the process with exit code {returncode}"


def _main() -> None:
    request = json.load(sys.stdin)
    sys.path[:] = request["path"]
    # Whatever a handler prints must not be taken for an answer.
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as answers:
        os.dup2(2, 1)
        for module, path in request["modules"]:
            answers.write(json.dumps({"module": module}) + "\n")
            signal.alarm(request["seconds"])
            outcome = _import(module, path)
            signal.alarm(0)
            answers.write(json.dumps({"module": module, "outcome": outcome}) + "\n")


def _import(name: str, path: list[str]) -> Outcome:
    sys.path[:0] = path
    try:
        module = importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit too: it is somebody else's code
        return Outcome("raised", _told(error), _line(error, name))
    finally:
        del sys.path[: len(path)]
    return _judge(getattr(module, "execute", None))


def _told(error: BaseException) -> str:
    """An exception in one line of a bearable length, whatever its own code makes of it."""
    try:
        said = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - it is somebody else's code
        said = "(it cannot be shown)"
    return f"{type(error).__name__}: {said[:300]}"


def _line(error: BaseException, name: str) -> int | None:
    """The line of the handler itself where the import went wrong."""
    file = Path(*name.split(".")[-2:]).with_suffix(".py")
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).match(str(file))
    ]
    return frames[-1].lineno if frames else None


def _judge(execute: Any) -> Outcome:
    if not callable(execute):
        return Outcome("missing")
    try:
        inspect.signature(execute).bind({}, None)
    except TypeError as error:
        return Outcome("uncallable", str(error))
    except ValueError:
        pass  # a builtin without a signature: nothing to judge
    return Outcome("imported")


if __name__ == "__main__":
    _main()
