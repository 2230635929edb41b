"""How a standard test says what is wrong with a store."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest


def same(found: Any, expected: Any, what: str) -> None:
    """Fail unless a store answered as it has to."""
    if type(found) is not type(expected) or found != expected:
        give_up(f"{what}: expected {expected!r:.300}, got {found!r:.300}")


def holds(condition: object, what: str) -> None:
    """Fail unless something is so."""
    if not condition:
        give_up(what)


def give_up(what: str) -> NoReturn:
    """Fail; the kit's own frames would only hide the sentence."""
    pytest.fail(what, pytrace=False)
