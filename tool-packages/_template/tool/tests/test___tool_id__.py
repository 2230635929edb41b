"""Contract tests with example calls; docs/testkit.md of Jackfield explains each test."""

from jackfield_testkit import Example, ToolContractTests


class Test__ToolName__(ToolContractTests):
    tool_id = "__tool_id__"
    examples = (
        Example({"text": "Doors close in five minutes."}, data={"words": 5}),
        Example({"text": ""}, error="VALIDATION"),
    )
