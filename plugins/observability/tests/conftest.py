"""Fixtures: hosts whose calls are observed, and their audit."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pytest
from jackfield_observability.audit import Audit
from jackfield_observability.settings import AuditSettings

_MODULE = Path(__file__).with_name("audited_host.py")


@pytest.fixture(scope="session")
def audited_host() -> ModuleType:
    """Import the module next to this one; test folders are not packages."""
    spec = importlib.util.spec_from_file_location("observability_audited_host", _MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def opened(audited_host: ModuleType) -> Iterator[Callable[..., Any]]:
    """Return a function that opens hosts, and close them with their observers after the test."""
    all_opened: list[Any] = []

    def open_one(*tools: Any, **options: Any) -> Any:
        all_opened.append(audited_host.AuditedHost(*tools, **options))
        return all_opened[-1]

    yield open_one
    for each in all_opened:
        for observer in each.orchestrator.observers:
            each.run(observer.close())
        each.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def audited(opened: Callable[..., Any], path: Path) -> Callable[..., Any]:
    """Return a function that opens an audited host with `audit` and `lines()`."""

    def open_one(*tools: Any, policies: Any = (), **options: Any) -> Any:
        audit = Audit(AuditSettings(path, **{"arguments": True, **options}))
        each = opened(*tools, observers=[audit], policies=policies)
        each.audit = audit

        def lines() -> list[dict[str, Any]]:
            assert audit.drain()
            return [orjson.loads(line) for line in path.read_bytes().splitlines()]

        each.lines = lines
        return each

    return open_one


@pytest.fixture
def host(path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start processes that audit their calls into `path`; audited_host.py explains `how`."""
    started: list[subprocess.Popen[str]] = []

    def start(how: str) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, str(_MODULE), str(path), how],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()
