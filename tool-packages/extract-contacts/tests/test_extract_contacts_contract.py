"""The contract tests of the tool."""

from __future__ import annotations

from jackfield_testkit import Example, ToolContractTests

SIGNATURE = "Ada Lovelace <ada@example.org>, +44 20 7946 0958, https://example.org/ada"


class TestExtractContacts(ToolContractTests):
    tool_id = "extract_contacts"
    examples = (
        Example({"text": SIGNATURE}, data=lambda data: data["emails"][0]["email"] == "ada@example.org"),
        Example({"text": "Ring (212) 736-5000.", "region": "US", "kinds": ["phones"]}),
        Example({"text": "Nothing to be found here."}),
        Example({"text": "Ring 212 736 5000.", "region": "UK"}, error="PERMANENT"),
        Example({"text": ""}, error="VALIDATION"),
    )
