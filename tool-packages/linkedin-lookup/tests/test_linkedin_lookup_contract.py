"""The contract tests of the tool."""

from __future__ import annotations

from jackfield import Mode
from jackfield_capability_types.knowledge import Record
from jackfield_testkit import Example, MemoryKnowledgeBase, ToolContractTests, ToolTestContext

PEOPLE = (
    Record(
        "person:ada",
        "Ada Example",
        "Potter in the north.",
        type="person",
        source_type="crm",
        metadata={
            "linkedin": "https://www.linkedin.com/in/ada-example",
            "role": "Potter",
            "company": "Northwind",
        },
    ),
    Record("person:bo", "Bo Example", "Unknown to LinkedIn.", type="person"),
)


class TestLinkedinLookup(ToolContractTests):
    tool_id = "linkedin_lookup"
    examples = (
        Example(
            {"name": "Ada Example"},
            data={
                "people": [
                    {
                        "id": "person:ada",
                        "name": "Ada Example",
                        "linkedin": "https://www.linkedin.com/in/ada-example",
                        "role": "Potter",
                        "company": "Northwind",
                        "matched": ["name"],
                        "source_type": "crm",
                        "last_updated": None,
                    }
                ],
                "without_profile": [],
            },
            name="a profile",
        ),
        Example(
            {"name": "ada", "company": "Northwind Ltd"},
            data=lambda data: data["people"][0]["matched"] == ["name", "company"],
        ),
        Example(
            {"name": "Bo"},
            data={
                "people": [],
                "without_profile": [{"id": "person:bo", "name": "Bo Example", "company": None}],
            },
        ),
        Example({"name": "Zed Nobody"}, data={"people": [], "without_profile": []}, name="nobody"),
        Example({"name": " . "}, error="PERMANENT"),
        Example({"name": ""}, error="VALIDATION"),
        Example({"name": "x" * 101}, error="VALIDATION"),
        Example({"name": "x", "company": ""}, error="VALIDATION"),
        Example({"name": "x", "top_k": 11}, error="VALIDATION"),
        Example({"company": "Northwind"}, error="VALIDATION"),
    )

    def context(self, mode: Mode) -> ToolTestContext:
        return ToolTestContext(mode, kb=MemoryKnowledgeBase(PEOPLE).for_user("test-user"))
