"""Compares the names on a page with those in the code; each difference is a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Iterable


def list_differences(place: str, listed: Iterable[str], expected: Iterable[str]) -> list[str]:
    """Return what to add to a place and what to remove from it, so that it lists what is expected."""
    on_page, in_code = set(listed), set(expected)
    return [
        *[f"{place}: add `{name}`" for name in sorted(in_code - on_page)],
        *[f"{place}: remove `{name}`, which does not exist" for name in sorted(on_page - in_code)],
    ]


def assert_lists(place: str, listed: Iterable[str], expected: Iterable[str]) -> None:
    """Fail with one line for each difference between a page and the code."""
    differences = list_differences(place, listed, expected)
    assert not differences, "\n".join(differences)
