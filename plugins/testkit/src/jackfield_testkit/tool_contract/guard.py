"""What a subclass may say and what it may not: a standard test is waived in the open or it runs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from jackfield_testkit.tool_contract.example import Example

OPEN = frozenset(
    {"tool_id", "examples", "waived", "context", "best_of", "max_block_ms", "cancel_grace_ms"},
)
"""What a subclass decides; everything else in the base class is sealed."""


def standard_tests(base: type) -> tuple[str, ...]:
    """The standard tests of a base class, in the order in which they run."""
    return tuple(name for name in vars(base) if name.startswith("test_"))


def check_sealed(cls: type, base: type) -> None:
    """Refuse a class in which a standard test, or what drives one, is no longer the kit's own."""
    for name, original in vars(base).items():
        if name.startswith("__") or name in OPEN or inspect.getattr_static(cls, name, None) is original:
            continue
        if name.startswith("test_"):
            raise TypeError(
                f"{cls.__name__} replaces the standard test {name}; leave it alone, give a test of your own "
                f'another name, and if it cannot hold say why: waived = {{"{name}": "the reason"}}'
            )
        raise TypeError(
            f"{cls.__name__} replaces {name}, which drives the standard tests; "
            f"give your own another name, and override context() to change what a handler is given"
        )
    for name in ("__init__", "__new__"):
        if getattr(cls, name) is not getattr(object, name):
            raise TypeError(
                f"{cls.__name__} has {name}, and pytest passes over such a class; use an autouse fixture"
            )


def check_statements(cls: Any, base: type) -> None:
    """Refuse a class that does not say which tool it is about, or from which nothing could be learnt."""
    name = cls.__name__
    if cls.__test__ is not True:
        raise TypeError(
            f"{name} sets __test__, which would switch every standard test off; remove it, or write "
            f"`class {name}({base.__name__}, abstract=True)` for a class that others share"
        )
    if not isinstance(cls.tool_id, str) or not cls.tool_id:
        raise TypeError(
            f'{name} does not say which tool it tests; set tool_id = "..." to the name of its entry point'
        )
    _check_examples(name, cls.examples)
    check_waived(name, cls.waived, standard_tests(base))


def _check_examples(name: str, examples: Any) -> None:
    if not isinstance(examples, tuple | list) or not all(isinstance(each, Example) for each in examples):
        raise TypeError(f"{name}.examples is not a tuple of Example(...)")
    if not examples:
        raise TypeError(
            f"{name} has no examples, and without one nothing is tested; "
            f"set examples = (Example({{...}}, data={{...}}),)"
        )
    if not any(example.succeeds for example in examples):
        raise TypeError(f"{name} has no example that succeeds; add one without error=")


def check_waived(name: str, waived: Any, known: tuple[str, ...]) -> None:
    """Refuse a waiver of something that is no standard test, or one that gives no reason."""
    if not isinstance(waived, Mapping):
        raise TypeError(f'{name}.waived is not a mapping such as {{"{known[0]}": "the reason"}}')
    for test, reason in waived.items():
        if test not in known:
            close = get_close_matches(str(test), known, 1)
            meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise TypeError(f"{name} waives {test!r}, which is no standard test; {meant}")
        if not isinstance(reason, str) or not reason.strip():
            raise TypeError(f"{name} waives {test} without a reason; say why it cannot hold")
