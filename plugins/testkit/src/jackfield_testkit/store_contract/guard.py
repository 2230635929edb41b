"""What a subclass may say and what it may not: a standard test is waived in the open or it runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from jackfield_testkit.tool_contract.guard import check_waived, standard_tests

OPEN = frozenset({"opener", "place", "with_clock", "shared", "waived", "rounds", "examples", "seed"})
"""What a subclass decides; everything else in the suite is sealed."""


def parts(suite: type) -> tuple[type, ...]:
    """The classes a suite is made of."""
    return tuple(part for part in suite.__mro__ if part is not object)


def all_tests(suite: type) -> tuple[str, ...]:
    """The standard tests of a suite, in the order in which its parts stand."""
    return tuple(name for part in parts(suite) for name in standard_tests(part))


def check_sealed(cls: type, suite: type) -> None:
    """Refuse a class in which a standard test, or what drives one, is no longer the kit's own."""
    for name in _names(parts(suite)):
        original = inspect.getattr_static(suite, name)
        if name in OPEN or inspect.getattr_static(cls, name, None) is original:
            continue
        if name.startswith("test_"):
            raise TypeError(
                f"{cls.__name__} replaces the standard test {name}; leave it alone, give a test of your own "
                f'another name, and if it cannot hold say why: waived = {{"{name}": "the reason"}}'
            )
        raise TypeError(
            f"{cls.__name__} replaces {name}, which drives the standard tests; give your own another name"
        )
    for name in ("__init__", "__new__"):
        if getattr(cls, name) is not getattr(object, name):
            raise TypeError(
                f"{cls.__name__} has {name}, and pytest passes over such a class; use an autouse fixture"
            )


def _names(classes: Iterable[type]) -> list[str]:
    return [name for each in classes for name in vars(each) if not name.startswith("__")]


def check_statements(cls: Any, suite: type) -> None:
    """Refuse a class that does not say which store it is about."""
    name = cls.__name__
    if cls.__test__ is not True:
        raise TypeError(
            f"{name} sets __test__, which would switch every standard test off; remove it, or write "
            f"`class {name}({suite.__name__}, abstract=True)` for a class that others share"
        )
    module, colon, function = cls.opener.partition(":")
    if not (module and colon and function):
        raise TypeError(
            f'{name} does not say how its store is opened; set opener = "module:function", where '
            "function(place) returns a store, in this process and in any other"
        )
    check_waived(name, cls.waived, all_tests(suite))
