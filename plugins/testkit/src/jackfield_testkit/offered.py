"""What the plugins that are installed here offer, for tests of tools that are to meet the real thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.offers import CapabilityOffer, Services
from jackfield.settings import parse_offer
from jackfield.store import MemoryStore
from jackfield_builder.discovery import discover

from jackfield_testkit.tool_contract.installed import plugins


def capability(name: str, settings: Mapping[str, Any] | None = None) -> Any:
    """A capability as a host would have it with these settings, over a store in memory.

    `LookupError` when no plugin that is installed offers it.
    """
    for each in plugins(discover().plugins).of("jackfield_capabilities"):
        if isinstance(each.offer, CapabilityOffer) and each.name == name:
            read = parse_offer("capabilities", each.offer, dict(settings or {}))
            return each.offer.create(read, Services(MemoryStore()))
    raise LookupError(f"no installed plugin offers the capability {name!r}; install one to test with it")
