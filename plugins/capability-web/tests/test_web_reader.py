"""The text of a page, and the worker processes that extract it."""

from __future__ import annotations

import asyncio
import os
import signal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield_web.content import ContentKind, FetchedResponse, content_kind
from jackfield_web.reader import formats
from jackfield_web.reader.formats import LONGEST, PageText, UnreadablePageError
from jackfield_web.reader.pool import ReaderPool
from jackfield_web.reader.worker import answered

ARTICLE = """<!doctype html><html><head><title>The  lighthouse</title><script>var x = 1;</script></head><body>
<nav><a href="/">Home</a> <a href="/shop">Shop</a></nav>
<article><h1>The lighthouse</h1>
<p>The lighthouse of Port Example was built by <b>Ida Example</b> and shines over the bay every night.</p>
<p>It has two hundred and twelve steps, which the keeper climbs each evening before the sun goes down.</p>
<h2>Visiting</h2><ul><li>Open from ten</li><li>Closed on Mondays</li></ul>
<table><tr><th>Ticket</th><th>Price</th></tr><tr><td>Adult</td><td>7</td></tr></table>
<p>Read <a href="more.html#steps">more about the steps</a>, <a href="mailto:a@b.example">write</a> or
<a href="javascript:alert(1)">press</a>. <a href="more.html">again</a></p></article>
<footer>All rights reserved by nobody</footer></body></html>"""


def read(content: bytes | str, content_type: str = "text/html", *, cut: bool = False) -> dict[str, Any]:
    body = content.encode() if isinstance(content, str) else content
    job = {
        "kind": content_kind(content_type),
        "contentType": content_type,
        "url": "https://x.example/a/",
        "cut": cut,
    }
    return answered(job, body)


def test_an_article_becomes_markdown_without_its_surroundings() -> None:
    found = read(ARTICLE)
    assert (found["title"], found["mediaType"], found["whole"]) == ("The lighthouse", "text/html", True)
    for part in ("# The lighthouse", "**Ida Example**", "## Visiting", "- Open from ten", "| Adult | 7 |"):
        assert part in found["text"]
    for part in ("var x", "Shop", "rights reserved"):
        assert part not in found["text"]


def test_links_are_absolute_http_urls_without_duplicates() -> None:
    assert read(ARTICLE)["links"] == [
        ("Home", "https://x.example/"),
        ("Shop", "https://x.example/shop"),
        ("more about the steps", "https://x.example/a/more.html"),
    ]
    based = '<base href="https://y.example/b/"><body><a href="c">see</a><a href="http://[">odd</a></body>'
    assert read(based)["links"] == [("see", "https://y.example/b/c")]
    many = "".join(f"<a href='/{number}'>page {number}</a>" for number in range(500))
    assert len(read(f"<html><body>{many}</body></html>")["links"]) == 100


def test_a_short_page_and_a_list_of_links_are_read_whole() -> None:
    short = read("<html><body><h1>Hours</h1><p>We open at <b>nine</b>.</p></body></html>")
    assert "We open at **nine**." in short["text"]
    entries = "".join(f"<li><a href='/{number}'>Release {number}</a></li>" for number in range(9))
    index = read(f"<html><body><h1>Releases</h1><ul>{entries}</ul></body></html>")
    assert "Release 0" in index["text"]
    assert "Release 8" in index["text"]


def test_a_page_filled_in_by_a_script_is_reported() -> None:
    found = read("<html><body><div id=root></div><script src=app.js></script></body></html>")
    assert "a script fills it in" in found["unreadable"]
    assert read("")["text"] == ""


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        ("Grüße an Łódź", "text/plain; charset=utf-8"),
        ("Grüße an Łódź", "text/plain"),
        ("Grüße an Łódź", 'text/plain; charset="UTF-8"'),
        ("Grüße an Łódź".encode("utf-8-sig"), "text/plain; charset=latin-1"),
        ("Grüße an Łódź".encode("utf-16"), "text/plain"),
        ("Grüße an Łódź".encode("iso8859-2"), "text/plain; charset=iso-8859-2"),
        ("Grüße an Łódź".encode("cp1250"), "text/plain; charset=windows-1250"),
    ],
)
def test_a_text_is_read_in_its_charset(content: bytes | str, content_type: str) -> None:
    assert read(content, content_type)["text"] == "Grüße an Łódź"


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain; charset=utf-8", "text/plain; charset=nonsense", "text/plain; charset=rot13",
        "text/plain; charset=idna", "text/plain; charset=unicode_escape", "text/plain; charset=",
        "text/plain; charset=utf-7",
    ],
)  # fmt: skip
def test_a_wrong_charset_falls_back_to_detection(content_type: str) -> None:
    sentence = "Die Straßenbahn fährt über die Brücke und hält an der Börse. " * 5
    assert read(sentence.encode("cp1252"), content_type)["text"] == sentence.strip()
    assert read(sentence.encode(), content_type)["text"] == sentence.strip()


def test_latin_1_is_decoded_as_in_browsers() -> None:
    assert read(b"\x93quoted\x94 \x80 5", "text/plain; charset=iso-8859-1")["text"] == "“quoted” € 5"


def test_a_page_may_name_its_charset_itself() -> None:
    page = (
        '<html><head><meta charset="windows-1251"><title>Маяк</title></head><body><p>Привет</p></body></html>'
    )
    found = read(page.encode("cp1251"))
    assert (found["title"], "Привет" in found["text"]) == ("Маяк", True)


def test_a_text_truncated_within_a_character_is_decoded() -> None:
    found = read("ab€".encode()[:-1], "text/plain; charset=utf-8", cut=True)
    assert (found["text"], found["whole"]) == ("ab", False)


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("text/html; charset=utf-8", ContentKind.HTML),
        ("application/xhtml+xml", ContentKind.HTML),
        ("TEXT/Plain", ContentKind.TEXT),
        ("application/json", ContentKind.TEXT),
        ("application/ld+json", ContentKind.TEXT),
        ("application/rss+xml", ContentKind.TEXT),
        ("application/pdf", ContentKind.PDF),
        ("", ContentKind.UNSAID),
        ("application/octet-stream", ContentKind.UNSAID),
        ("image/png", None),
        ("application/zip", None),
    ],
)
def test_readable_formats_are_selected_by_media_type(content_type: str, kind: ContentKind | None) -> None:
    assert content_kind(content_type) is kind


def test_content_without_a_media_type_is_inspected() -> None:
    assert read(ARTICLE, "")["mediaType"] == "text/html"
    assert read("just words", "application/octet-stream")["mediaType"] == "text/plain"
    assert read(document("Words on paper"), "")["mediaType"] == "application/pdf"
    assert "not text" in read(b"\x89PNG\r\n\x1a\n\0\0\0", "")["unreadable"]


def test_json_is_returned_unchanged() -> None:
    found = read('{"a": [1, 2]}', "application/json")
    assert (found["text"], found["mediaType"]) == ('{"a": [1, 2]}', "application/json")


def document(*pages: str) -> bytes:
    """Create a PDF with a line of text on each page."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    writer.add_metadata({"/Title": "Paper"})
    for words in pages:
        page = writer.add_blank_page(300, 300)
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({words}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    written = BytesIO()
    writer.write(written)
    return written.getvalue()


def test_the_text_of_pdf_pages_is_extracted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(document("First page", "Second page"), "application/pdf")
    assert (found["title"], found["text"]) == ("Paper", "First page\n\nSecond page")
    monkeypatch.setattr(formats, "MOST_PAGES", 1)
    short = read(document("First page", "Second page"), "application/pdf")
    assert (short["text"], short["whole"]) == ("First page", False)


@pytest.mark.parametrize(
    ("content", "cut", "why"),
    [
        (document("x"), True, "too large"),
        (b"%PDF-1.7 nothing", False, "damaged"),
        (document(""), False, "scanned"),
    ],
)
def test_a_pdf_without_text_is_rejected_with_the_reason(content: bytes, cut: bool, why: str) -> None:
    assert why in read(content, "application/pdf", cut=cut)["unreadable"]


def test_no_text_is_longer_than_the_limit() -> None:
    found = read("word " * 200_000, "text/plain")
    assert (len(found["text"]), found["whole"]) == (LONGEST, False)


def test_a_deeply_nested_page_is_read_or_rejected() -> None:
    found = read("<div>" * 100_000 + "deep" + "</div>" * 100_000)
    assert "text" in found or "unreadable" in found


@given(
    st.binary(max_size=400) | st.text(alphabet="<>/ab=\"'&;!- \n", max_size=200).map(str.encode),
    st.sampled_from(["text/html", "text/plain", "application/pdf", "", "text/html; charset=utf-16"]),
)
@settings(deadline=None, max_examples=60)
def test_arbitrary_bytes_give_a_text_or_an_error_message(content: bytes, content_type: str) -> None:
    found = read(content, content_type)
    assert isinstance(found.get("text", found.get("unreadable")), str)
    assert "cause" not in found


def answer(
    content: str | bytes = ARTICLE, kind: ContentKind = ContentKind.HTML, content_type: str = "text/html"
) -> FetchedResponse:
    body = content.encode() if isinstance(content, str) else content
    return FetchedResponse("https://x.example/", content_type, kind, body, cut=False)


def pids(room: ReaderPool) -> list[int]:
    return [reader._process.pid for reader in room._idle]


async def taken(room: ReaderPool) -> None:
    """Wait until the only worker reads a page."""
    while pids(room):  # noqa: ASYNC110 - the room has no event for it
        await asyncio.sleep(0)


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_a_worker_is_reused_and_exits_with_the_pool() -> None:
    async def run() -> None:
        room = ReaderPool(60)
        first = await room.read(answer())
        (pid,) = pids(room)
        second = await room.read(answer("plain", ContentKind.TEXT, "text/plain"))
        assert (first.title, second.text, pids(room)) == ("The lighthouse", "plain", [pid])
        await room.close()
        assert gone(pid)

    asyncio.run(run())


def test_a_worker_has_no_keys_limited_memory_and_cannot_write_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    async def run() -> None:
        room = ReaderPool(60)
        await room.read(answer())
        place = Path(f"/proc/{pids(room)[0]}")
        limits = {
            line[:25].strip(): line[26:].split()[0] for line in (place / "limits").read_text().splitlines()
        }
        assert b"sk-secret" not in (place / "environ").read_bytes()
        assert (limits["Max address space"], limits["Max file size"]) == (str(1024**3), "0")
        await room.close()

    asyncio.run(run())


def test_a_slow_worker_is_stopped_and_the_next_page_is_read() -> None:
    async def run() -> None:
        room = ReaderPool(0.001)
        await room.start_reader()
        (pid,) = pids(room)
        with pytest.raises(UnreadablePageError, match="too long"):
            await room.read(answer())
        assert gone(pid)
        room._seconds = 60
        assert (await room.read(answer())).title == "The lighthouse"
        await room.close()

    asyncio.run(run())


def test_a_dead_worker_is_replaced() -> None:
    async def run() -> None:
        room = ReaderPool(60)
        await room.start_reader()
        (pid,) = pids(room)
        os.kill(pid, signal.SIGKILL)
        await room._idle[0]._process.wait()
        assert (await room.read(answer())).title == "The lighthouse"
        assert pids(room) != [pid]
        await room.close()

    asyncio.run(run())


def test_a_worker_that_crashes_on_a_page_is_reported_and_replaced() -> None:
    async def run() -> None:
        room = ReaderPool(60)
        await room.start_reader()
        (pid,) = pids(room)
        reading = asyncio.create_task(room.read(answer()))
        await taken(room)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(UnreadablePageError, match="reading it crashed the reader"):
            await reading
        assert (await room.read(answer())).title == "The lighthouse"
        await room.close()

    asyncio.run(run())


def test_a_cancelled_caller_stops_its_worker() -> None:
    async def run() -> None:
        room = ReaderPool(60)
        await room.start_reader()
        (pid,) = pids(room)
        reading = asyncio.create_task(room.read(answer()))
        await taken(room)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert gone(pid)
        await room.close()

    asyncio.run(run())


def test_many_pages_share_a_few_workers() -> None:
    async def run() -> list[PageText]:
        room = ReaderPool(60)
        read = await asyncio.gather(
            *(room.read(answer(f"page {n}", ContentKind.TEXT, "text/plain")) for n in range(9))
        )
        assert len(pids(room)) <= 2
        await room.close()
        return read

    assert [each.text for each in asyncio.run(run())] == [f"page {n}" for n in range(9)]
