"""The moment at which the requests of the tests are made."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 16, 10, 0, tzinfo=ZONE)
"""A Monday."""
