"""The contract tests of the tool."""

from __future__ import annotations

from jackfield_testkit import Example, ToolContractTests


class TestStartVoiceSession(ToolContractTests):
    tool_id = "start_voice_session"
    examples = (
        Example({}, data={"status": "requested", "pending_request": None}),
        Example({"pending_request": ""}, data={"status": "requested", "pending_request": None}),
        Example({"pending_request": " \n"}, data={"status": "requested", "pending_request": None}),
        Example(
            {"pending_request": "tell a joke"},
            data={"status": "requested", "pending_request": "tell a joke"},
            name="with a request",
        ),
        Example({"pending_request": "x" * 500}, name="the longest"),
        Example({"pending_request": "x" * 501}, error="VALIDATION"),
        Example({"pending_request": None}, error="VALIDATION"),
        Example({"request": "tell a joke"}, error="VALIDATION"),
    )
