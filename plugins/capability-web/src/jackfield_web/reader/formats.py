"""Text of HTML pages, PDF files and plain text; parsers are imported when they are first used."""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pypdf import PageObject

LONGEST = 500_000
"""The maximum number of characters that are kept of a page."""


class UnreadablePageError(Exception):
    """No text can be extracted; the message says why, in a clause for the model."""


class PageText(NamedTuple):
    """The text of a page."""

    title: str
    text: str
    links: list[tuple[str, str]]
    media_type: str
    whole: bool = True


_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_NAME = re.compile(r"(utf-?8|utf-?16(le|be)?|utf-?32(le|be)?|us-ascii|ascii|latin-?\d+|iso-?8859-?\d+"
                   r"|windows-?\d+|cp-?\d+|koi8-?[rut]|mac-?\w+|gbk|gb-?2312|gb-?18030|big5(-?hkscs)?"
                   r"|euc-?(jp|kr)|shift-?jis|iso-?2022-?(jp|kr)|tis-?620)")  # fmt: skip
# Browsers decode these charsets as their supersets.
_LARGER = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
_GUESSED_FROM = 64 * 1024


def decoded(content: bytes, content_type: str, *, marked_up: bool, cut: bool) -> str:
    """Decode by byte order mark, HTTP header, meta element or a guess, in this order."""
    for name in _candidates(content, content_type, marked_up=marked_up):
        text = _strictly(content, name, cut=cut)
        if text is not None:
            return text
    return content.decode(_guessed(content), "replace")


def _candidates(content: bytes, content_type: str, *, marked_up: bool) -> Iterator[str]:
    for mark, name in _MARKS:
        if content.startswith(mark):
            yield name
    if said := _HEADER.search(content_type):
        yield said[1]
    if marked_up and (meta := _META.search(content[:4096])):
        yield meta[1].decode("ascii", "replace")
    yield "utf-8"


def _strictly(content: bytes, name: str, *, cut: bool) -> str | None:
    """Decode strictly; None if the bytes are not in that charset. A cut body may end within a character."""
    plain = name.lower().replace("_", "-")
    if plain != "utf-8-sig" and not _NAME.fullmatch(plain):
        return None
    try:
        known = codecs.lookup(plain).name
        decoder = codecs.getincrementaldecoder(_LARGER.get(known, known))()
        return decoder.decode(content, final=not cut)
    except (LookupError, UnicodeError):
        return None


def _guessed(content: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(content[:_GUESSED_FROM]).best()
    return best.encoding if best else "cp1252"


MOST_LINKS = 100

_SHORT = 500
_TITLES = "//head/title|//meta[@property='og:title']/@content|//h1"


def read_html(content: bytes, content_type: str, url: str, *, cut: bool) -> PageText:
    """Extract the main part of a page, its title and its links."""
    from lxml import etree, html  # type: ignore[import-untyped]

    text = decoded(content, content_type, marked_up=True, cut=cut)
    parser = html.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        page = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except etree.ParserError:
        return PageText("", "", [], "text/html")
    title, links = _title(page), _links(page, url)
    written = _markdown(page)
    if not written and page.xpath("//script"):
        raise UnreadablePageError("it has no text of its own; a script fills it in, and scripts are not run")
    return PageText(title, written, links, "text/html")


def _markdown(page: Any) -> str:
    """Return the article as Markdown, or the whole page if there is no article.

    On a page that is a list of links, article extraction finds almost nothing, so a short result is compared
    with the text of the whole page.
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
    """Return the page's links, each address once, in page order."""
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


MOST_PAGES = 100


def read_pdf(content: bytes, *, cut: bool) -> PageText:
    """Extract the pages in order; a truncated PDF lacks its cross-reference table and cannot be read."""
    if cut:
        raise UnreadablePageError("it is a PDF that is too large to read")
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    # pypdf logs repairs, which are not useful here.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadablePageError("it is a PDF with a password")
        title = " ".join(str((reader.metadata and reader.metadata.title) or "").split())
        text, whole = _pages(reader.pages)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, NotImplementedError, OSError):
        raise UnreadablePageError("it is a damaged or unsupported PDF") from None
    if not text:
        raise UnreadablePageError("it is a PDF without text; it seems to be scanned")
    return PageText(title[:300], text, [], "application/pdf", whole)


def _pages(pages: Iterable[PageObject]) -> tuple[str, bool]:
    """Return the text of the pages, and whether it is complete."""
    texts: list[str] = []
    size = 0
    for number, page in enumerate(pages):
        if number == MOST_PAGES or size > LONGEST:
            return "\n\n".join(texts), False
        if words := page.extract_text().replace("\0", "").strip():
            texts.append(words)
            size += len(words)
    return "\n\n".join(texts), True
