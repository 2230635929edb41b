"""Imports handlers in a separate process, so that side effects and crashes cannot affect the build.

The process reads a JSON request from standard input. For each handler it writes one JSON line before the
import and one with the result. If a handler has no result, its import ended the process.
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
from typing import Any, NamedTuple

from jackfield_builder.type_schemas import HandlerSchemas, handler_schemas

SECONDS_PER_MODULE = 20
_MAX_PLACES = 100


class ImportRequest(NamedTuple):
    """A handler to import, as `module:function`, and the folders to add to `sys.path`."""

    handler: str
    path: tuple[str, ...] = ()


class ImportResult(NamedTuple):
    """The result of an import; `kind` is imported, raised, died, missing (no such function) or uncallable."""

    kind: str
    message: str = ""
    places: tuple[tuple[str, int], ...] = ()
    """The files and lines that the import had reached, innermost last."""
    schemas: HandlerSchemas | None = None
    """The schemas of the types in the handler's signature; None if it was not imported."""


def probe_imports(handlers: Sequence[ImportRequest]) -> dict[str, ImportResult]:
    """Import every handler; continue in a new process after a module that ends its process."""
    results: dict[str, ImportResult] = {}
    remaining = list(handlers)
    while remaining:
        request = {"path": sys.path, "handlers": remaining, "seconds": SECONDS_PER_MODULE}
        child = subprocess.run(
            [sys.executable, "-m", "jackfield_builder.handler_probe"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        last = ""
        for line in child.stdout.splitlines():
            message = json.loads(line)
            last = message["handler"]
            if "result" in message:
                kind, text, places, schemas = message["result"]
                reached = tuple((file, line) for file, line in places)
                results[last] = ImportResult(kind, text, reached, schemas and HandlerSchemas(*schemas))
        if not last:
            raise RuntimeError(f"the probe process did not start: {child.stderr.strip()[-2000:]}")
        # If an exit hook of an imported module ended the process, every handler already has a result.
        if last not in results:
            died = ImportResult("died", _exit_message(child.returncode))
            # The other handlers of the module would end the process too, each after its full time limit.
            results |= {each.handler: died for each in remaining if _module(each.handler) == _module(last)}
        remaining = [each for each in remaining if each.handler not in results]
    return results


def _module(handler: str) -> str:
    return handler.partition(":")[0]


def _exit_message(returncode: int) -> str:
    if returncode == -signal.SIGALRM:
        return f"it took longer than {SECONDS_PER_MODULE} s"
    if returncode < 0:
        return f"{signal.Signals(-returncode).name} ended the process"
    return f"it ended the process with exit code {returncode}"


def _main() -> None:
    request = json.load(sys.stdin)
    sys.path[:] = request["path"]
    # A handler's output to standard output must not mix with the results.
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as output:
        os.dup2(2, 1)
        for handler, path in request["handlers"]:
            output.write(json.dumps({"handler": handler}) + "\n")
            signal.alarm(request["seconds"])
            result = _import(handler, path)
            signal.alarm(0)
            output.write(json.dumps({"handler": handler, "result": result}) + "\n")


def _import(handler: str, path: list[str]) -> ImportResult:
    name, _, function = handler.partition(":")
    sys.path[:0] = path
    try:
        module = importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - third-party code may raise anything, even SystemExit
        return ImportResult("raised", _error_message(error), _error_places(error))
    finally:
        del sys.path[: len(path)]
    return _check_function(getattr(module, function, None))


def _error_message(error: BaseException) -> str:
    """Return an exception as one short line, even if its own `__str__` raises."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - `__str__` of a third-party exception may raise anything
        text = "(no message: str() of the exception fails)"
    return f"{type(error).__name__}: {text[:300]}"


def _error_places(error: BaseException) -> tuple[tuple[str, int], ...]:
    """Return the files and lines that the import had reached; a syntax error's line is not in a frame."""
    places = [(frame.filename, frame.lineno or 1) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno or 1))
    return tuple(places[-_MAX_PLACES:])


def _check_function(function: Any) -> ImportResult:
    if not callable(function):
        return ImportResult("missing")
    try:
        inspect.signature(function).bind({}, None)
    except TypeError as error:
        return ImportResult("uncallable", str(error))
    except ValueError:
        pass  # A builtin without a signature cannot be checked.
    return ImportResult("imported", schemas=handler_schemas(function))


if __name__ == "__main__":
    _main()
