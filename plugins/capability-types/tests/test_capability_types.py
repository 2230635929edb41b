"""Values of capabilities are immutable, so that tools can share them."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jackfield_capability_types
import pytest

MODULES = [each.name for each in pkgutil.iter_modules(jackfield_capability_types.__path__)]


def values() -> Iterator[type]:
    """Yield every dataclass of every module."""
    for name in MODULES:
        module = importlib.import_module(f"jackfield_capability_types.{name}")
        for each in vars(module).values():
            if (
                dataclasses.is_dataclass(each)
                and isinstance(each, type)
                and each.__module__ == module.__name__
            ):
                yield each


@pytest.mark.parametrize("value", list(values()), ids=lambda value: value.__name__)
def test_values_are_immutable_and_have_no_extra_members(value: type) -> None:
    made: Any = object.__new__(value)
    field = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, field, None)
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        made.invented = None


@pytest.mark.parametrize("name", MODULES)
def test_types_can_be_imported_without_the_capability(name: str) -> None:
    program = (
        f"import sys, jackfield_capability_types.{name}\n"
        "found = {each for each in sys.modules if each.startswith('jackfield')}\n"
        "assert not {each for each in found if each.partition('.')[0] not in "
        "('jackfield', 'jackfield_capability_types')}, found\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
