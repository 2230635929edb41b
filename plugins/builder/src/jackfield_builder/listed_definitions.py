"""Compares definitions of tools that other systems provide, and shows their untrusted texts safely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Definition = Mapping[str, Any]
"""The other system's definition of a tool: `name`, `description`, `inputSchema`, and any other members."""

MAX_TEXT = 160
"""The maximum number of characters of a description that a message quotes."""

_NAMES = {"name", "title"}
_DESCRIBED = {"name", "description", "inputSchema", "outputSchema"}


def definition_changes(old: Definition, new: Definition) -> list[str]:
    """Return everything that changed in a tool; empty if nothing did."""
    return [*text_changes(old, new), *_schema_changes(old, new), *_other_changes(old, new)]


def text_changes(old: Definition, new: Definition) -> Iterator[str]:
    """Yield a change of the name or the description, with both texts."""
    if old.get("name") != new.get("name"):
        yield f"renamed to {visible(str(new.get('name')))!r}"
    before, after = str(old.get("description") or ""), str(new.get("description") or "")
    if before != after:
        yield f"description altered: {quoted(before)} -> {quoted(after)}"


def hint_changes(old: Definition, new: Definition) -> Iterator[str]:
    """Yield the changes that a registry shows nowhere else, such as changed hints."""
    if old.get("inputSchema") != new.get("inputSchema"):
        yield "schema of the arguments changed on the server"
    yield from _other_changes(old, new)


def is_renamed(old: Definition, new: Definition) -> bool:
    """Return whether two definitions differ only in their names."""
    before, after = (
        {name: value for name, value in each.items() if name not in _NAMES} for each in (old, new)
    )
    return before == after and old.get("name") != new.get("name")


def renamed(gone: Definition, listed: Iterable[Definition]) -> Definition | None:
    """Return the definition that a tool now has under another name, if it is otherwise the same."""
    return next((each for each in listed if is_renamed(gone, each)), None)


def _schema_changes(old: Definition, new: Definition) -> Iterator[str]:
    # Only a changed tool needs it, and hosts import this module.
    from jackfield_builder.schema_changes import argument_changes

    before, after = old.get("inputSchema") or {}, new.get("inputSchema") or {}
    if before != after:
        try:
            found = [visible(what) for what, _ in argument_changes(before, after)]
        except Exception:  # noqa: BLE001 - the schema may be anything; that it changed is certain
            found = []
        yield from found or ["schema of the arguments changed"]
    if old.get("outputSchema") != new.get("outputSchema"):
        yield "schema of the result changed"


def _other_changes(old: Definition, new: Definition) -> Iterator[str]:
    for member in sorted({*old, *new} - _DESCRIBED):
        before, after = old.get(member) or {}, new.get(member) or {}
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            parts = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
            yield f"{visible(member)} changed: {visible(', '.join(parts))}"
        else:
            yield f"{visible(member)} changed"


def quoted(text: str, limit: int = MAX_TEXT) -> str:
    """Return the beginning of an untrusted text as one line; characters that cannot be seen are escaped."""
    if not text:
        return "nothing"
    shown = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return f'"{visible(shown)}"'


def visible(text: str) -> str:
    """Return a text with escapes for characters that are invisible or control the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
