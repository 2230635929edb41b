"""Loads the validators of requests and messages in a thread, once the host is ready or a client needs them.

pydantic compiles them, which takes a third as long as the rest of the startup.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)

_MODULES = (
    "jackfield_host.request_models",
    "jackfield_host.response_models",
    "jackfield_host.client_messages",
)

_loading = threading.Lock()
_loaded = threading.Event()


async def load_validators() -> None:
    """Return once the validators are loaded, without blocking the event loop."""
    if not _loaded.is_set():
        await asyncio.to_thread(_load)


async def preload_validators(and_then: Callable[[], object]) -> None:
    """Load the validators before a client needs them, then call a function; a failure is logged."""
    try:
        await asyncio.to_thread(_load, and_then)
    except Exception:  # noqa: BLE001 - the host continues; what needs no validator still works
        _log.exception("cannot load the validators of requests; reinstall pydantic")


def _load(and_then: Callable[[], object] | None = None) -> None:
    with _loading:
        for name in _MODULES:
            importlib.import_module(name)
        if and_then is not None:
            and_then()
        _loaded.set()
