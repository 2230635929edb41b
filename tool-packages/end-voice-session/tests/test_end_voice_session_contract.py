"""The contract tests of the tool."""

from __future__ import annotations

from jackfield_testkit import Example, ToolContractTests


class TestEndVoiceSession(ToolContractTests):
    tool_id = "end_voice_session"
    examples = (
        Example(
            {"reason": "user_request"},
            data={"reason": "user_request", "ends_after": "current_turn", "say": None, "text_sent": False},
        ),
        Example(
            {"reason": "task_complete", "closing_message": "Goodbye!", "text_message": "Booked for Friday."},
            data={
                "reason": "task_complete",
                "ends_after": "farewell_spoken",
                "say": "Goodbye!",
                "text_sent": True,
            },
            name="with both messages",
        ),
        Example({"reason": "inactivity", "closing_message": "x" * 200}, name="the longest to speak"),
        Example({"reason": "other", "text_message": "x" * 500}, name="the longest to read"),
        Example({}, error="VALIDATION", name="no reason"),
        Example({"reason": "bored"}, error="VALIDATION"),
        Example({"reason": "other", "closing_message": "x" * 201}, error="VALIDATION"),
        Example({"reason": "other", "text_message": "x" * 501}, error="VALIDATION"),
        Example({"reason": "other", "after": "current_turn"}, error="VALIDATION"),
    )
