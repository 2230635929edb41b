"""Conversion of dates and times to UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo


def moment(value: date | datetime, *, days_in: ZoneInfo, floating_in: ZoneInfo) -> datetime:
    """Convert a date (its start), a floating time or a time with a zone to UTC."""
    if not isinstance(value, datetime):
        return datetime.combine(value, time(), days_in).astimezone(UTC)
    return (value if value.tzinfo else value.replace(tzinfo=floating_in)).astimezone(UTC)
