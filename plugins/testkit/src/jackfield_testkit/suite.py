"""The base of all contract suites: a contract test runs unchanged unless it is explicitly waived."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, TypeVar

import pytest
from jackfield import ErrorType, ToolError

_Harness = TypeVar("_Harness")
_AsyncTest = Callable[[Any, _Harness], Awaitable[None]]


class ContractTests:
    """The base of a suite: `class XContractTests(ContractTests, ..., suite=True)`.

    A subclass overrides what the suite lists in `overridable` and nothing else. `abstract=True` makes a
    base class that subclasses share and that does not run itself.
    """

    __test__: ClassVar[bool] = False

    waived: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Contract tests that cannot pass, each with the reason."""

    overridable: ClassVar[frozenset[str]] = frozenset({"waived"})
    """The names that a subclass may override; everything else in the suite is sealed."""

    override_hint: ClassVar[str] = "give your own a different name"
    """What to do instead of overriding something that is sealed."""

    suite: ClassVar[type[ContractTests]]
    """The suite that a subclass belongs to."""

    def __init_subclass__(cls, *, suite: bool = False, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if suite:
            cls.suite = cls
            return
        if "__test__" not in vars(cls):
            cls.__test__ = not abstract
        _check_sealed(cls)
        if not abstract:
            _check_settings(cls)

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a subclass that does not define its subject."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Check again, because an attribute can also be set after the class was created."""
        _check_sealed(type(self))
        _check_settings(type(self))
        self.parametrize(metafunc)

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize a contract test; a suite whose tests have parameters overrides this."""

    @pytest.fixture(autouse=True)
    def _skip_waived(self, request: pytest.FixtureRequest) -> None:
        test = request.function.__name__
        if test in self.waived:
            pytest.skip(f"{type(self).__name__} waives {test}: {self.waived[test]}")


def contract_tests(*parts: type) -> tuple[str, ...]:
    """Return the names of the tests that classes define, in their order."""
    return tuple(name for part in parts for name in vars(part) if name.startswith("test_"))


def suite_tests(suite: type[ContractTests]) -> tuple[str, ...]:
    """Return the names of all contract tests of a suite, in their order."""
    return contract_tests(*_parts(suite))


def require_override(cls: type[ContractTests], method: str, signature: str) -> None:
    """Raise `TypeError` for a class that does not define the method that sets up its subject."""
    if inspect.getattr_static(cls, method) is inspect.getattr_static(cls.suite, method):
        raise TypeError(f"{cls.__name__} does not define what it tests; define `{signature}`")


def _check_sealed(cls: type[ContractTests]) -> None:
    """Raise `TypeError` for a class that replaces a contract test or code that drives one."""
    for name in (name for part in _parts(cls.suite) for name in vars(part) if not name.startswith("__")):
        if name in cls.suite.overridable or _definition(cls, name) is _definition(cls.suite, name):
            continue
        if name.startswith("test_"):
            raise TypeError(
                f"{cls.__name__} replaces the contract test {name}; give your own test a "
                "different name, or, if "
                f'the contract test cannot pass, waive it: waived = {{"{name}": "the reason"}}'
            )
        raise TypeError(
            f"{cls.__name__} replaces {name}, which drives the contract tests; {cls.override_hint}"
        )
    for name in ("__init__", "__new__"):
        if getattr(cls, name) is not getattr(object, name):
            raise TypeError(
                f"{cls.__name__} has {name}, and pytest ignores such a class; use an autouse fixture"
            )


def _definition(cls: type, name: str) -> object:
    """Return a class's definition of a name; this is fast, because pytest asks for every test of a suite."""
    for part in cls.__mro__:
        if name in part.__dict__:
            return part.__dict__[name]
    return None


def _check_settings(cls: type[ContractTests]) -> None:
    """Raise `TypeError` for a class that is disabled, incomplete, or waives an unknown test."""
    name = cls.__name__
    if cls.__test__ is not True:
        raise TypeError(
            f"{name} sets __test__, which would disable every contract test; remove it, or write "
            f"`class {name}({cls.suite.__name__}, abstract=True)` for a base class"
        )
    cls.check_settings()
    _check_waived(name, cls.waived, suite_tests(cls.suite))


def _parts(suite: type) -> tuple[type, ...]:
    return tuple(part for part in suite.__mro__ if part is not object)


def _check_waived(name: str, waived: Any, known: tuple[str, ...]) -> None:
    if not isinstance(waived, Mapping):
        raise TypeError(f'{name}.waived is not a mapping such as {{"{known[0]}": "the reason"}}')
    for test, reason in waived.items():
        if test not in known:
            close = get_close_matches(str(test), known, 1)
            hint = f"did you mean {close[0]}?" if close else f"the contract tests are {', '.join(known)}"
            raise TypeError(f"{name} waives {test!r}, which is not a contract test; {hint}")
        if not isinstance(reason, str) or not reason.strip():
            raise TypeError(f"{name} waives {test} without a reason; say why it cannot pass")


def async_test_for(
    subject: str, seconds: float | Callable[[], float], hint: str = ""
) -> Callable[[_AsyncTest[_Harness]], Callable[[Any, _Harness], None]]:
    """Return a decorator that runs async tests on their own event loop, with a time limit.

    The failure message names the subject, and the hint if there is one. `seconds` may be a function, for a
    limit that can change.
    """

    def decorate(test: _AsyncTest[_Harness]) -> Callable[[Any, _Harness], None]:
        @functools.wraps(test)
        def run(*arguments: Any, **named: Any) -> None:
            limit = seconds() if callable(seconds) else seconds

            async def bounded() -> None:
                async with asyncio.timeout(limit):
                    await test(*arguments, **named)

            try:
                asyncio.run(bounded())
            except TimeoutError:
                fail_test(f"{subject} did not answer within {limit:.0f} s{hint}")

        return run

    return decorate


def expect_equal(found: Any, expected: Any, what: str) -> None:
    """Fail the test unless a value and its type are as expected."""
    if type(found) is not type(expected) or found != expected:
        fail_test(f"{what}: expected {expected!r:.300}, got {found!r:.300}")


def expect(condition: object, problem: str) -> None:
    """Fail the test with this problem unless a condition is true."""
    if not condition:
        fail_test(problem)


async def expect_error(work: Awaitable[Any], expected: ErrorType, what: str) -> ToolError:
    """Return the `ToolError` that the work must raise."""
    try:
        outcome: object = await work
    except ToolError as error:
        expect_equal(error.type, expected, f"the error type of {what}")
        expect(error.message, f"{what} failed without a message")
        return error
    except Exception as error:  # noqa: BLE001 - the test reports whatever was raised
        outcome = error
    return fail_test(f"{what}: expected a failure of type {expected}, got {outcome!r:.200}")


def fail_test(problem: str) -> NoReturn:
    """Fail the test with this message alone; a traceback of the kit would hide it."""
    pytest.fail(problem, pytrace=False)
