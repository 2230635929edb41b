"""The public API for authors of tools and plugins, each name with its signature.

`PYTHONPATH=tests python -m compatibility.api_listing` prints the listing of golden/kernel-api-<version>.json.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import jackfield_capability_types as types

MODULES = (
    "jackfield",
    "jackfield.hookspecs",
    "jackfield.offers",
    *(f"{types.__name__}.{each.name}" for each in pkgutil.iter_modules(types.__path__)),
    "jackfield.transport.events",
    "jackfield.transport.protocol",
    "jackfield.transport.queue",
)
"""Modules whose public names are all listed."""

BESIDES = (
    "jackfield.contract.manifest:ToolManifest",
    "jackfield.governance:Call",
    "jackfield.governance:SyncPolicy",
    "jackfield.governance:Policy",
    "jackfield.orchestrator:Observer",
    "jackfield.registry.registry:RegisteredTool",
    "jackfield.session.intents:IntentHandler",
    "jackfield.session.session:Session",
    "jackfield.settings:Bytes",
    "jackfield.settings:EnvironmentVariable",
    "jackfield.settings:Format",
    "jackfield.settings:Ge",
    "jackfield.settings:Gt",
    "jackfield.settings:Help",
    "jackfield.settings:HttpUrl",
    "jackfield.settings:Le",
    "jackfield.settings:Lt",
    "jackfield.settings:MaxLen",
    "jackfield.settings:MinLen",
    "jackfield.settings:NoSettings",
    "jackfield.settings:NonEmpty",
    "jackfield.settings:Phrases",
    "jackfield.settings:Seconds",
    "jackfield.settings:Secret",
    "jackfield.settings:SettingsError",
    "jackfield.settings:Unit",
    "jackfield.settings:parse_offer",
    "jackfield.store:Claim",
    "jackfield.store:ClaimState",
    "jackfield.store:StreamEntry",
    "jackfield.store:MemoryStore",
    "jackfield.store:Store",
    "jackfield.store:StoreUnavailableError",
)
"""Names that offers create or receive, from modules that hold more than that."""


def listing() -> dict[str, str]:
    """Return every public name with its description."""
    found: dict[str, str] = {}
    for module in MODULES:
        for name, value in _public(importlib.import_module(module)):
            found |= _described(f"{module}.{name}", value)
    for place in BESIDES:
        module, _, name = place.partition(":")
        found |= _described(f"{module}.{name}", getattr(importlib.import_module(module), name))
    return dict(sorted(found.items()))


def _public(module: Any) -> Iterator[tuple[str, Any]]:
    ours = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", module.__name__) == module.__name__
        if not (name.startswith("_") or inspect.ismodule(value) or name == "annotations")
    ]
    for name in getattr(module, "__all__", ours):
        yield name, getattr(module, name)


def _described(path: str, value: Any) -> dict[str, str]:
    if not inspect.isclass(value):
        return {path: _signed(value) if inspect.isfunction(value) else _plain(repr(value))}
    if issubclass(value, enum.Enum):
        return {path: "enum", **{f"{path}.{each.name}": str(each.value) for each in value}}
    members = {name: each for name, each in _members(value) if not name.startswith("_")}
    return {path: _made(value), **{f"{path}.{name}": each for name, each in members.items()}}


def _made(kind: type) -> str:
    """Return the signature of the constructor; protocols have none."""
    if getattr(kind, "_is_protocol", False):
        return "protocol"
    bases = [base.__name__ for base in kind.__bases__ if base is not object]
    # An exception without its own `__init__` takes any arguments, other classes none.
    own = any("__init__" in vars(base) for base in kind.__mro__ if base.__module__.startswith("jackfield"))
    written = own or issubclass(kind, tuple)
    signature = _plain(str(inspect.signature(kind))) if written else "as its base"
    return f"class({', '.join(bases)}) {signature}"


def _members(kind: type) -> Iterator[tuple[str, str]]:
    # The attributes of a class without annotations.
    yield from ((name, "attribute") for name in vars(kind).get("__slots__", ()))
    for name, hint in inspect.get_annotations(kind).items():
        yield name, _plain(str(hint))
    for name, value in vars(kind).items():
        if isinstance(value, property):
            yield name, f"property{_signed(value.fget)}"
        elif isinstance(value, classmethod | staticmethod):
            yield name, f"{type(value).__name__} {_signed(value.__func__)}"
        elif inspect.isfunction(value):
            yield name, _signed(value)


def _signed(function: Any) -> str:
    kind = "async " if inspect.iscoroutinefunction(function) else ""
    return kind + _plain(str(inspect.signature(function)))


def _plain(text: str) -> str:
    """Remove what differs between runs or Python versions."""
    text = re.sub(r"ForwardRef\('([^']*)'\)| at 0x[0-9a-f]+", r"\1", text)
    return re.sub("['\"]", "", text.replace("= ''", "= <empty>"))


if __name__ == "__main__":
    print(json.dumps(listing(), indent=1))
