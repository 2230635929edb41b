"""Reads a page and returns the requested part."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield_capability_types.web import Page

_MOST_LINKS = 50


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Fetch the page; the capability's errors reach the model unchanged."""
    url = args["url"].strip()
    await ctx.progress(f"reading {_host(url)}")
    page: Page = await ctx.web.fetch(url)
    offset = args["offset"]
    if offset and offset >= len(page.text):
        return fail(
            ErrorType.PERMANENT,
            f"The page has {len(page.text)} characters; there is nothing at {offset}.",
            suggestion="Use a smaller offset, or answer with what you have.",
        )
    ctx.audit("page_fetched", host=_host(page.url), content_type=page.content_type, characters=len(page.text))
    return ok(_wire(url, page, offset, args["max_chars"], links=args["include_links"]))


def _wire(url: str, page: Page, offset: int, size: int, *, links: bool) -> dict[str, Any]:
    end = _end(page.text, offset, size)
    data: dict[str, Any] = {
        "url": url,
        "final_url": page.url,
        "title": page.title,
        "content_type": page.content_type,
        "fetched_at": page.fetched_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "source_type": "web",
        "content": page.text[offset:end],
        "truncated": end < len(page.text) or not page.complete,
    }
    if end < len(page.text):
        data["next_offset"] = end
    if links:
        data["links"] = [{"text": each.text, "url": each.url} for each in page.links[:_MOST_LINKS]]
    return data


def _end(text: str, start: int, size: int) -> int:
    """Return the end of a part: at a line end in its last fifth if there is one, else between words."""
    end = start + size
    if end >= len(text):
        return len(text)
    for mark in ("\n", " "):
        found = text.rfind(mark, end - size // 5, end)
        if found > start:
            return found + 1
    return end


def _host(url: str) -> str:
    """Return only the host of a URL, for people to read."""
    try:
        return urlsplit(url).hostname or "a page"
    except ValueError:
        return "a page"
