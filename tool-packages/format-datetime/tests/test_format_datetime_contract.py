"""The contract tests of the tool."""

from __future__ import annotations

from jackfield_testkit import Example, ToolContractTests

NOON = {"datetime": "2026-03-08T12:00:00Z"}


class TestFormatDatetime(ToolContractTests):
    tool_id = "format_datetime"
    examples = (
        Example(
            {**NOON, "timezone": "Asia/Tokyo"}, data=lambda data: data["iso"] == "2026-03-08T21:00:00+09:00"
        ),
        Example({**NOON, "locale": "pt-BR", "style": "long", "include": "date"}),
        Example(
            {**NOON, "style": "relative", "now": "2026-03-08T09:00:00Z"},
            data=lambda data: data["text"] == "in 3 hours",
        ),
        Example({"datetime": "2026-12-24", "style": "full"}, data=lambda data: data["weekday"] == "Thursday"),
        Example({**NOON, "timezone": "Atlantis/Capital"}, error="PERMANENT"),
        Example({"datetime": "tomorrow"}, error="PERMANENT"),
        Example({**NOON, "style": "loud"}, error="VALIDATION"),
    )
