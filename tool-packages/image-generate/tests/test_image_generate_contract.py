"""The contract tests of the tool."""

from __future__ import annotations

from jackfield import Mode
from jackfield_testkit import Example, MemoryImages, ToolContractTests, ToolTestContext


class TestImageGenerate(ToolContractTests):
    tool_id = "image_generate"
    examples = (
        Example(
            {"prompt": "a lighthouse"},
            data=lambda data: len(data["images"]) == 1 and data["shown"] and data["provider"] == "memory",
        ),
        Example(
            {"prompt": "a boat", "avoid": "people", "shape": "landscape", "quality": "high", "count": 4},
            data=lambda data: [each["width"] for each in data["images"]] == [96, 96, 96, 96],
            name="everything said",
        ),
        Example({"prompt": "x" * 4000, "avoid": "y" * 500}, name="the longest"),
        Example({"prompt": " \n"}, error="PERMANENT"),
        Example({"prompt": ""}, error="VALIDATION"),
        Example({"prompt": "x" * 4001}, error="VALIDATION"),
        Example({"prompt": "x", "avoid": "y" * 501}, error="VALIDATION"),
        Example({"prompt": "x", "shape": "round"}, error="VALIDATION"),
        Example({"prompt": "x", "quality": "best"}, error="VALIDATION"),
        Example({"prompt": "x", "count": 0}, error="VALIDATION"),
        Example({"prompt": "x", "count": 5}, error="VALIDATION"),
        Example({"prompt": "x", "model": "gpt-image-2"}, error="VALIDATION"),
        Example({}, error="VALIDATION"),
    )

    def context(self, mode: Mode) -> ToolTestContext:
        return ToolTestContext(mode, images=MemoryImages())
