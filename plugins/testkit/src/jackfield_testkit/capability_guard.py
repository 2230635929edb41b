"""What a subclass of a capability's suite may say: a standard test is waived in the open or it runs."""

from __future__ import annotations

import inspect
from typing import Any

from jackfield_testkit.store_contract.guard import all_tests, parts
from jackfield_testkit.tool_contract.guard import check_waived


def check_sealed(cls: type, suite: type, decides: frozenset[str]) -> None:
    """Refuse a class in which a standard test, or what drives one, is no longer the kit's own."""
    for name in (name for part in parts(suite) for name in vars(part) if not name.startswith("__")):
        if name in decides or inspect.getattr_static(cls, name, None) is inspect.getattr_static(suite, name):
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


def check_statements(cls: Any, suite: type, hook: str, signature: str) -> None:
    """Refuse a class that is switched off, or that does not say what it tests."""
    name = cls.__name__
    if cls.__test__ is not True:
        raise TypeError(
            f"{name} sets __test__, which would switch every standard test off; remove it, or write "
            f"`class {name}({suite.__name__}, abstract=True)` for a class that others share"
        )
    if inspect.getattr_static(cls, hook) is inspect.getattr_static(suite, hook):
        raise TypeError(f"{name} does not say what it tests; define `{signature}`")
    check_waived(name, cls.waived, all_tests(suite))
