"""The contract tests of the tool, with bans in a dict."""

from __future__ import annotations

from jackfield import Mode, ToolContext
from jackfield_testkit import Example, ToolContractTests, ToolTestContext

FAREWELL = "That is not a tone I accept. You can come back in a minute."
NOW = 1_777_636_800.0


class Bans:
    """The capability with a stopped clock."""

    def __init__(self) -> None:
        self.until: dict[tuple[str | None, str], float] = {}

    async def add(self, user: str | None, seconds: float, session: str = "") -> float:
        self.until[user, session] = max(NOW, self.until.get((user, session), 0.0)) + seconds
        return self.until[user, session]

    async def remaining(self, user: str | None, session: str = "") -> float:
        return max(0.0, self.until.get((user, session), 0.0) - NOW)


class TestIgnoreUser(ToolContractTests):
    tool_id = "ignore_user"
    examples = (
        Example(
            {"duration_seconds": 60, "farewell_message": FAREWELL},
            mode="voice",
            data={
                "scope": "user",
                "until": "2026-05-01T12:01:00+00:00",
                "seconds_remaining": 60,
                "client_told": True,
                "say": FAREWELL,
            },
        ),
        Example(
            {"duration_seconds": 86400, "farewell_message": FAREWELL, "reason": "threat of violence"},
            mode="text",
            data=lambda data: data["say"] is None and data["seconds_remaining"] == 86400,
            name="the longest, in text",
        ),
        Example({"duration_seconds": 30, "farewell_message": "x" * 200}, name="the shortest"),
        Example({"duration_seconds": 45.5, "farewell_message": "Bye."}, name="a fraction"),
        Example({"duration_seconds": 29.9, "farewell_message": FAREWELL}, error="VALIDATION"),
        Example({"duration_seconds": 86401, "farewell_message": FAREWELL}, error="VALIDATION"),
        Example({"duration_seconds": "60", "farewell_message": FAREWELL}, error="VALIDATION"),
        Example({"duration_seconds": 60}, error="VALIDATION", name="no farewell"),
        Example({"duration_seconds": 60, "farewell_message": ""}, error="VALIDATION"),
        Example({"duration_seconds": 60, "farewell_message": " \n"}, error="VALIDATION", name="a blank one"),
        Example({"duration_seconds": 60, "farewell_message": "x" * 201}, error="VALIDATION"),
        Example(
            {"duration_seconds": 60, "farewell_message": FAREWELL, "reason": "x" * 201}, error="VALIDATION"
        ),
    )

    def context(self, mode: Mode) -> ToolContext:
        return ToolTestContext(mode, bans=Bans())
