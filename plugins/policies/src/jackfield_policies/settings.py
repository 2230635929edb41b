"""Numbers from a deployment's settings, refused with a sentence when they make no sense."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from jackfield.offers import PluginSettings
from jackfield.settings import SettingsError


def numbers(
    policy: str, given: PluginSettings, known: Mapping[str, float], others: Sequence[str] = ()
) -> dict[str, float]:
    """The known settings, those given in place of their defaults; `others` are read by the policy itself."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        names = ", ".join((*known, *others)) or "none"
        raise SettingsError(f"policies.{policy}: unknown setting {unknown[0]!r}; known are {names}")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise SettingsError(f"policies.{policy}.{name}: {value!r} is not a number of at least 0")
    return {**known, **given}
