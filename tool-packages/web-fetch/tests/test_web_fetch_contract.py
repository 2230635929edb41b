"""The contract tests of the tool."""

from __future__ import annotations

from datetime import UTC, datetime

from jackfield import ErrorType, Mode, ToolError
from jackfield_capability_types.web import Link, Page
from jackfield_testkit import Example, ToolContractTests, ToolTestContext

FETCHED = datetime(2026, 11, 2, 9, 30, 0, 250_000, UTC)
INSTALL = Page(
    "https://docs.example.com/en/install",
    "Installing",
    "# Installing\n\nOn Windows, use the installer.",
    "text/html",
    FETCHED,
    links=(Link("Upgrading", "https://docs.example.com/en/upgrade"),),
)
STORY = Page(
    "https://tales.example/", "", "A line of the story.\n" * 2000, "text/plain", FETCHED, complete=False
)


class MemoryWeb:
    """Two pages, and hosts that are rejected."""

    async def fetch(self, url: str) -> Page:
        if "docs.example.com" in url:
            return INSTALL
        if "tales.example" in url:
            return STORY
        raise ToolError(ErrorType.PERMANENT, "It may not be read.", suggestion="Use another source.")

    async def close(self) -> None:
        """Do nothing; no resources are open."""


DATA = {
    "url": "https://docs.example.com/install",
    "final_url": "https://docs.example.com/en/install",
    "title": "Installing",
    "content_type": "text/html",
    "fetched_at": "2026-11-02T09:30:00Z",
    "source_type": "web",
    "content": "# Installing\n\nOn Windows, use the installer.",
    "truncated": False,
}


class TestWebFetch(ToolContractTests):
    tool_id = "web_fetch"
    examples = (
        Example({"url": "https://docs.example.com/install"}, data=DATA, name="a page"),
        Example(
            {"url": " https://docs.example.com/install ", "include_links": True},
            data={**DATA, "links": [{"text": "Upgrading", "url": "https://docs.example.com/en/upgrade"}]},
            name="with links",
        ),
        Example(
            {"url": "https://tales.example/", "max_chars": 500, "offset": 21},
            data=lambda data: (
                data["truncated"] and data["next_offset"] == 21 * 24 and len(data["content"]) <= 500
            ),
            name="a part",
        ),
        Example(
            {"url": "https://tales.example/", "max_chars": 20000, "offset": 41_000},
            data=lambda data: data["truncated"] and "next_offset" not in data,
            name="the end of what there is",
        ),
        Example(
            {"url": "https://docs.example.com/", "offset": 5000}, error="PERMANENT", name="behind the end"
        ),
        Example({"url": "http://169.254.169.254/"}, error="PERMANENT", name="refused"),
        Example({"url": "http://[broken"}, error="PERMANENT", name="not an address"),
        Example({"url": ""}, error="VALIDATION"),
        Example({"url": "https://x.example/" + "a" * 2048}, error="VALIDATION"),
        Example({"url": "https://x.example/", "max_chars": 100}, error="VALIDATION"),
        Example({"url": "https://x.example/", "max_chars": 20001}, error="VALIDATION"),
        Example({"url": "https://x.example/", "offset": -1}, error="VALIDATION"),
        Example({"url": "https://x.example/", "headers": {}}, error="VALIDATION"),
        Example({"url": "https://x.example/", "method": "POST"}, error="VALIDATION"),
        Example({}, error="VALIDATION"),
    )

    def context(self, mode: Mode) -> ToolTestContext:
        return ToolTestContext(mode, web=MemoryWeb())
