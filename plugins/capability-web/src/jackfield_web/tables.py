"""What is wrong with a table of settings, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from jackfield.settings import SettingsError

Kinds = Mapping[str, tuple[tuple[type, ...], str]]
"""What each setting of a table is: its types, and what is wanted in words."""


def refuse_unusable(where: str, kinds: Kinds, settings: Mapping[str, Any]) -> None:
    """`SettingsError` for a setting that is unknown, of another type, empty or not above 0."""
    for name, value in settings.items():
        if name == "api_key":
            raise SettingsError(
                f"{where}.api_key: a key does not belong in a file; put it into an environment variable and "
                "name that one: api_key_env = 'BRAVE_API_KEY'"
            )
        if name not in kinds:
            close = get_close_matches(name, kinds, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(kinds)}"
            raise SettingsError(f"{where}: unknown setting {name!r}; {meant}")
        types, wanted = kinds[name]
        # To Python true is the number 1, to whoever wrote the setting it is not.
        usable = isinstance(value, types) and not isinstance(value, bool)
        if usable and isinstance(value, (int, float)):
            usable = 0 < value < float("inf")
        if not usable or value == "":
            raise SettingsError(f"{where}.{name}: {value!r} is not {wanted}")
