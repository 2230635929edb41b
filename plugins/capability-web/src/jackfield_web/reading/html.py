"""HTML to Markdown: what a reader of the page came for, without menus, scripts and advertisements."""

from __future__ import annotations

from typing import Any

from jackfield_web.reading.charsets import decoded
from jackfield_web.reading.texts import Text, UnreadableError

MOST_LINKS = 100

_SHORT = 500
_TITLES = "//head/title|//meta[@property='og:title']/@content|//h1"


def read_html(content: bytes, content_type: str, url: str, *, cut: bool) -> Text:
    """The main part of a page, with its title and links."""
    from lxml import etree, html  # type: ignore[import-untyped]

    text = decoded(content, content_type, marked_up=True, cut=cut)
    parser = html.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        page = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except etree.ParserError:
        return Text("", "", [], "text/html")
    title, links = _title(page), _links(page, url)
    written = _markdown(page)
    if not written and page.xpath("//script"):
        raise UnreadableError("it has no text of its own; a script fills it in, and scripts are not run")
    return Text(title, written, links, "text/html")


def _markdown(page: Any) -> str:
    """The article, or the whole page where there is none.

    What looks for an article finds next to nothing on a page that is a list of links, so a short finding is
    held against all that the page says.
    """
    from copy import deepcopy
    from functools import partial

    from trafilatura import extract
    from trafilatura.settings import use_config

    markdown = partial(extract, output_format="markdown", include_comments=False, include_links=False)
    careful = use_config()
    careful.set("DEFAULT", "MIN_EXTRACTED_SIZE", "1")
    article = str(markdown(deepcopy(page), config=careful) or "")
    if len(article) >= _SHORT:
        return article
    everything = str(markdown(page, favor_recall=True) or "")
    return everything if len(everything) > 2 * len(article) else article


def _title(page: Any) -> str:
    for found in page.xpath(_TITLES):
        words = " ".join((found if isinstance(found, str) else found.text_content()).split())
        if words:
            return words[:300]
    return ""


def _links(page: Any, url: str) -> list[tuple[str, str]]:
    """Where the page leads, each address once, in the order of the page."""
    from urllib.parse import urldefrag, urljoin

    base = next(iter(page.xpath("//base/@href")), "")
    found: dict[str, str] = {}
    for anchor in page.xpath("//a[@href]"):
        try:
            target, _ = urldefrag(urljoin(urljoin(url, base), anchor.get("href").strip()))
        except ValueError:
            continue
        words = " ".join(anchor.text_content().split())[:200]
        if target.startswith(("http://", "https://")) and len(target) <= 2048 and target != url and words:
            found.setdefault(target, words)
        if len(found) == MOST_LINKS:
            break
    return [(words, target) for target, words in found.items()]
