"""Tables of `[capabilities.calendar]`, parsed as the kernel does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.settings import parse_settings
from jackfield_calendar.settings import CalendarCapabilitySettings


def read(table: Mapping[str, Any]) -> CalendarCapabilitySettings:
    return parse_settings(CalendarCapabilitySettings, table, "[capabilities.calendar]")
