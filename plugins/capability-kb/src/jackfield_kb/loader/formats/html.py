"""HTML: the main content of a page, without navigation, scripts and forms.

The content is selected by elements, not by heuristics: pages of a knowledge base are short, and extraction
tools made for news mistake short pages for boilerplate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from jackfield_kb.loader import slugs
from jackfield_kb.loader.documents import Document, UnreadableFileError
from jackfield_kb.loader.drafts import RecordDraft
from jackfield_kb.loader.slugs import slug, spoken

_ASIDE = (
    "//script|//style|//noscript|//template|//nav|//aside|//button|//select|//textarea|//iframe|//svg|//canvas"
    "|//object|//body/header[not(.//h1)]|//body//nav|//footer[not(ancestor::article)]"
    "|//*[@role='navigation' or @role='banner' or @role='search']"
    "|//*[@role='contentinfo' or @role='complementary']"
    "|//*[@hidden or @aria-hidden='true']"
)
_BLOCK = re.compile(
    "address|article|blockquote|body|center|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|h[1-6]|header"
    "|hr|main|ol|p|pre|section|summary|table|tbody|tfoot|thead|ul"
)
_LINES = frozenset(("br", "li", "tr", "caption"))
_CELLS = frozenset(("td", "th"))
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_DATES = ("article:modified_time", "og:updated_time", "dcterms.modified", "last-modified", "date")


def read(document: Document) -> Iterator[RecordDraft]:
    """Yield one record with the main part of the page."""
    page = _parsed(document)
    title = _title(page)
    url, updated = _canonical(page), _updated(page)
    for node in page.xpath(_ASIDE):
        if node.getparent() is not None:
            node.drop_tree()
    text = _text(_main(page))
    if not text:
        raise UnreadableFileError(
            "it has no text of its own; perhaps a script fills it in",
            "save the rendered page from a browser, or export it as text",
        )
    yield RecordDraft(title=title or spoken(slug(document.path.stem)), text=text, url=url, updated=updated)


def _parsed(document: Document) -> Any:
    from lxml import etree, html  # type: ignore[import-untyped]

    start = document.data.read(4096)
    document.data.seek(0)
    declared = _CHARSET.search(start)
    text = document.text(declared[1].decode("ascii") if declared else None)
    parser = html.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        page = html.document_fromstring(text.encode(), parser=parser)
    except etree.ParserError:
        raise UnreadableFileError("it contains only white space", "add content, or delete it") from None
    limit = parser.error_log.filter_from_fatals()
    if limit:
        raise UnreadableFileError(f"it cannot be parsed ({limit[0].message})", "save it again from a browser")
    return page


def _main(page: Any) -> Any:
    """Return the main element if there is exactly one, otherwise the page."""
    for candidates in (page.xpath("//main|//*[@role='main']"), page.xpath("//article")):
        if len(candidates) == 1 and candidates[0].text_content().strip():
            return candidates[0]
    return page


def _title(page: Any) -> str:
    for node in (*page.xpath("//h1"), *page.xpath("//head/title")):
        words = " ".join(node.text_content().split())
        if words:
            return words
    return ""


def _canonical(page: Any) -> str | None:
    for url in page.xpath("//link[@rel='canonical']/@href|//meta[@property='og:url']/@content"):
        if slugs.is_safe(url.strip()):
            return str(url.strip())
    return None


def _updated(page: Any) -> datetime | None:
    for node in page.xpath("//meta[@content]"):
        if (node.get("property") or node.get("name") or node.get("http-equiv") or "").lower() in _DATES:
            try:
                moment = datetime.fromisoformat(node.get("content").strip())
            except ValueError:
                continue
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _text(root: Any) -> str:
    """Return the text as shown: paragraphs for blocks, lines for list items and rows, `|` between cells."""
    body = root.find("body")
    pieces: list[str] = []
    for event, node in _steps(root if body is None else body):
        if _BLOCK.fullmatch(node.tag):
            pieces.append("\n\n")
        elif node.tag in _LINES and event == "start":
            pieces.append("\n")
        elif node.tag in _CELLS and event == "start" and node.getprevious() is not None:
            pieces.append(" | ")
        words = node.text if event == "start" else node.tail
        if words and not (event == "end" and node is root):
            pieces.append(re.sub(r"[ \t\r\n\f]+", " ", words))
    lines = "".join(pieces).split("\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.strip() for line in lines)).strip()


def _steps(root: Any) -> Iterator[tuple[str, Any]]:
    from lxml import etree

    return iter(etree.iterwalk(root, events=("start", "end")))
