"""Makes the helper modules of these tests importable, and runs tests that are coroutines."""

from __future__ import annotations

import asyncio
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

# Test modules are imported by file, so shared modules must be importable by name.
sys.path.insert(0, str(Path(__file__).parent))
# The harness of the host's tests, for tests that need clients with sockets.
sys.path.append(str(Path(__file__).parents[2] / "host" / "tests"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Run a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
