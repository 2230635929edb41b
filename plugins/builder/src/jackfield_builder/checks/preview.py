"""The template of a confirmation card, held against the parameters that it is filled in with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from string import Formatter
from typing import Any

_FORMS = ("moment", "in", "until")


def problems(template: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Why a template cannot be filled in with these parameters."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        yield str(error)
        return
    properties = parameters.get("properties")
    known = set(properties) if isinstance(properties, dict) else set()
    for _, name, form, conversion in parts:
        if name is None:
            continue
        kind, _, other = (form or "").partition(" ")
        if conversion or (form and kind not in _FORMS) or (kind == "moment" and other):
            yield (
                f"{{{name}}} carries a format; there are {{{name}:moment}}, {{{name}:in ZONE}} and "
                f"{{{name}:until END}}"
            )
            continue
        for argument in (name, other) if kind in ("in", "until") else (name,):
            if argument.split(".")[0] not in known:
                yield f"{{{argument}}} is not a parameter"
