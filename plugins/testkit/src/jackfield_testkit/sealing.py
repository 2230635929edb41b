"""What all suites of standard tests share: a test is waived in the open, or it runs as the kit wrote it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, ClassVar

import pytest


def standard_tests(*parts: type) -> tuple[str, ...]:
    """The tests that classes define, in the order in which they stand."""
    return tuple(name for part in parts for name in vars(part) if name.startswith("test_"))


class SealedTests:
    """The base of a suite: `class XContractTests(SealedTests, ..., suite=True)`.

    A subclass decides what the suite leaves to it and replaces nothing else; `abstract=True` makes a base
    that others share and that is not run itself.
    """

    __test__: ClassVar[bool] = False

    waived: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Standard tests that cannot hold, each with the reason."""

    decides: ClassVar[frozenset[str]] = frozenset({"waived"})
    """What a subclass decides; everything else in the suite is sealed."""

    otherwise: ClassVar[str] = "give your own another name"
    """What to do instead of replacing something that is sealed."""

    suite: ClassVar[type[SealedTests]]
    """The suite a subclass belongs to."""

    def __init_subclass__(cls, *, suite: bool = False, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if suite:
            cls.suite = cls
            return
        if "__test__" not in vars(cls):
            cls.__test__ = not abstract
        _check_sealed(cls)
        if not abstract:
            _check_statements(cls)

    @classmethod
    def check_statements(cls) -> None:
        """Refuse a class that does not say what it tests."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Check once more, because an attribute can also be set after the class was made."""
        _check_sealed(type(self))
        _check_statements(type(self))
        self.parametrize(metafunc)

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Spread a standard test over what it is run for."""

    @pytest.fixture(autouse=True)
    def _skip_what_is_waived(self, request: pytest.FixtureRequest) -> None:
        test = request.function.__name__
        if test in self.waived:
            pytest.skip(f"{type(self).__name__} waives {test}: {self.waived[test]}")


def check_defined(cls: type[SealedTests], method: str, signature: str) -> None:
    """Refuse a class that leaves out the method by which it says what it tests."""
    if inspect.getattr_static(cls, method) is inspect.getattr_static(cls.suite, method):
        raise TypeError(f"{cls.__name__} does not say what it tests; define `{signature}`")


def _check_sealed(cls: type[SealedTests]) -> None:
    """Refuse a class in which a standard test, or what drives one, is no longer the kit's own."""
    for name in (name for part in _parts(cls.suite) for name in vars(part) if not name.startswith("__")):
        original = inspect.getattr_static(cls.suite, name)
        if name in cls.suite.decides or inspect.getattr_static(cls, name, None) is original:
            continue
        if name.startswith("test_"):
            raise TypeError(
                f"{cls.__name__} replaces the standard test {name}; leave it alone, give a test of your own "
                f'another name, and if it cannot hold say why: waived = {{"{name}": "the reason"}}'
            )
        raise TypeError(f"{cls.__name__} replaces {name}, which drives the standard tests; {cls.otherwise}")
    for name in ("__init__", "__new__"):
        if getattr(cls, name) is not getattr(object, name):
            raise TypeError(
                f"{cls.__name__} has {name}, and pytest passes over such a class; use an autouse fixture"
            )


def _check_statements(cls: type[SealedTests]) -> None:
    """Refuse a class that is switched off, does not say what it tests, or waives what is not there."""
    name = cls.__name__
    if cls.__test__ is not True:
        raise TypeError(
            f"{name} sets __test__, which would switch every standard test off; remove it, or write "
            f"`class {name}({cls.suite.__name__}, abstract=True)` for a class that others share"
        )
    cls.check_statements()
    _check_waived(name, cls.waived, suite_tests(cls.suite))


def suite_tests(suite: type[SealedTests]) -> tuple[str, ...]:
    """All standard tests of a suite, in the order in which its parts stand."""
    return standard_tests(*_parts(suite))


def _parts(suite: type) -> tuple[type, ...]:
    return tuple(part for part in suite.__mro__ if part is not object)


def _check_waived(name: str, waived: Any, known: tuple[str, ...]) -> None:
    if not isinstance(waived, Mapping):
        raise TypeError(f'{name}.waived is not a mapping such as {{"{known[0]}": "the reason"}}')
    for test, reason in waived.items():
        if test not in known:
            close = get_close_matches(str(test), known, 1)
            meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise TypeError(f"{name} waives {test!r}, which is no standard test; {meant}")
        if not isinstance(reason, str) or not reason.strip():
            raise TypeError(f"{name} waives {test} without a reason; say why it cannot hold")
