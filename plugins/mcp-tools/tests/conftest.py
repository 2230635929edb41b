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


@pytest.fixture(scope="session")
def shop_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a transport that supports forms, and a registry with the tools of the shop."""
    from shop_host import make_site

    return make_site(tmp_path_factory.mktemp("shop-site"))


@pytest.fixture
def path(request: pytest.FixtureRequest) -> str:
    """Return how the shop is reached."""
    return getattr(request, "param", "new stdio")


@pytest.fixture
def server() -> dict[str, Any]:
    """Return further settings of the shop's server."""
    return {}


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Run a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
