"""Cost of loading a registry beyond importing its handlers, by step."""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import orjson
from jackfield.contract.snapshot import NOT_CODE, Snapshot, content_hash
from jackfield.distributions import folder_of, package_hash
from jackfield.invocation import as_handler
from jackfield.registry.registry import Deployment, Registry

from bench.kb_tools import package_of, tool_names

REPEATS = 5


def milliseconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def best(work: Callable[[], object]) -> float:
    return min(milliseconds(work) for _ in range(REPEATS))


def parts(path: Path, registry: Registry) -> dict[str, float]:
    """Return the cost of each step alone, after a full run."""
    wire = orjson.loads(path.read_bytes())
    tools = [tool.frozen for tool in registry.tools.values()]
    packages = [tool.handler.partition(":")[0].rpartition(".")[0] for tool in tools]
    folders = [folder for package in packages if (folder := folder_of(package))]
    handlers = [tool.handler for tool in registry.tools.values()]
    return {
        "reading the file": best(lambda: orjson.loads(path.read_bytes())),
        "hashing it": best(lambda: content_hash(wire)),
        "parsing the manifests": best(lambda: Snapshot.from_wire(wire)),
        "finding the packages": best(lambda: [folder_of(package) for package in packages]),
        "hashing the code": best(lambda: [package_hash(each, "1.0.0", exclude=NOT_CODE) for each in folders]),
        "checking the handlers": best(lambda: [as_handler(handler) for handler in handlers]),
    }


def main() -> None:
    path = Path(os.environ["JACKFIELD_REGISTRY"])
    names = tool_names(len(orjson.loads(path.read_bytes())["tools"]))

    def import_handlers() -> None:
        for name in names:
            importlib.import_module(f"{package_of(name)}.handler")

    deployment = Deployment(os.environ["JACKFIELD_DEPLOYMENT"])
    imported = milliseconds(import_handlers)
    loaded = milliseconds(lambda: Registry.load(path, deployment))
    registry = Registry.load(path, deployment)
    compiled = milliseconds(lambda: [tool.arguments.compile() for tool in registry.tools.values()])
    taken = {
        "importing the handlers": imported,
        "**loading beyond importing the handlers**": loaded,
        "postponed to the first calls: validators": compiled,
        "loading again in the same process": best(lambda: Registry.load(path, deployment)),
    }
    taken |= {f"of which {part}": took for part, took in parts(path, registry).items()}
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
