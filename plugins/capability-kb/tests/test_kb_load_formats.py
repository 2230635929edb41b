"""Records from files of each format: real files, real parsers."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import docx
import pytest
from jackfield_capability_types.knowledge import Record
from jackfield_kb.cli.terminal import NoProgress
from jackfield_kb.library import Library
from jackfield_kb.loader.drafts import LoadOptions
from jackfield_kb.loader.load import LoadPlan, LoadRun, LoadSummary
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

Loaded = tuple[dict[str, Record], LoadSummary]
Loader = Callable[..., Loaded]


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    """Return a function that writes files into a folder, loads it and returns the records by id."""
    folder = tmp_path / "files"
    folder.mkdir()

    def load(files: dict[str, str | bytes], **options: Any) -> Loaded:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        library = Library(tmp_path / "library", embedder=None, notice=lambda line: None)
        try:
            summary = LoadRun(library, LoadPlan(LoadOptions(**options)), NoProgress(), lambda: False).run(
                [folder]
            )
            return {record.id: record for record in library}, summary
        finally:
            library.close()

    return load


def pdf(*pages: str, title: str | None = None, password: str | None = None) -> bytes:
    """Create a PDF with a line of text on each page; a page without text is blank."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(300, 300)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode() if text else b"")
        page[NameObject("/Contents")] = writer._add_object(stream)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
    facts = {"/ModDate": "D:20260203040506Z"}
    writer.add_metadata(facts | ({"/Title": title} if title else {}))
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def word(fill: Callable[[Any], None], *, title: str = "") -> bytes:
    """Create a Word document."""
    document = docx.Document()
    fill(document)
    document.core_properties.title = title
    document.core_properties.modified = datetime(2026, 4, 5, 6, 7, 8)  # noqa: DTZ001 - as Word keeps it
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def only(loaded: Loaded) -> Record:
    records, summary = loaded
    assert not summary.problems
    (record,) = records.values()
    return record


def test_markdown_front_matter_sets_every_field_of_the_record(load: Loader) -> None:
    record = only(
        load(
            {
                "people/ada.md": dedent("""\
                    ---
                    id: ada
                    type: person
                    title: "Ada: the first"
                    namespace: public
                    tags: [maths, 1843]
                    url: https://halden.example/ada
                    source_type: crm
                    last_updated: 2026-10-01T12:00:00+02:00
                    linkedin: www.linkedin.com/in/halden-sample-ada
                    team: Engines
                    metadata:
                      born: 1815-12-10
                      weights: [1, 2.5, null]
                    ---
                    # Another heading

                    Wrote the first programme.
                    """)
            }
        )
    )
    assert record == Record(
        id="person:ada",
        title="Ada: the first",
        text="# Another heading\n\nWrote the first programme.",
        type="person",
        namespace="public",
        tags=("maths", "1843"),
        url="https://halden.example/ada",
        source_type="crm",
        last_updated=datetime(2026, 10, 1, 10, tzinfo=UTC),
        metadata={
            "born": "1815-12-10",
            "weights": [1, 2.5, None],
            "team": "Engines",
            "linkedin": "https://www.linkedin.com/in/halden-sample-ada",
        },
    )


@pytest.mark.parametrize(
    ("name", "content", "id_", "title"),
    [
        (
            "a/Holiday Policy.md",
            "```\n# not this\n```\n## *Days* off\ntext",
            "doc:a/holiday-policy",
            "Days off",
        ),
        ("notes.md", "no heading at all", "doc:notes", "Notes"),
        ("a-rule.md", "---\nJust a line between rules\n---\n", "doc:a-rule", "Just a line between rules"),
        ("Öffnungs_zeiten.txt", "Montag bis Freitag", "doc:öffnungs-zeiten", "Öffnungs zeiten"),
        ("営業時間.txt", "月曜日", "doc:営業時間", "営業時間"),
        ("plan.txt", b"\xff\xfeh\x00i\x00", "doc:plan", "Plan"),
    ],
)
def test_an_id_comes_from_the_path_and_a_title_from_the_first_heading_or_the_name(
    load: Loader, name: str, content: str | bytes, id_: str, title: str
) -> None:
    record = only(load({name: content}))
    assert (record.id, record.title) == (id_, title)


def test_options_apply_to_fields_that_a_document_leaves_out(load: Loader) -> None:
    records, summary = load(
        {"open.md": "text", "closed.md": "---\ntype: link\nnamespace: public\ntags: own\n---\ntext"},
        type="process",
        owner="demo",
        tags=("new",),
    )
    assert not summary.problems
    assert (records["process:open"].namespace, records["process:open"].owner) == ("personal", "demo")
    closed = records["link:closed"]
    assert (closed.namespace, closed.owner, closed.tags) == ("public", None, ("own", "new"))


def test_html_is_read_without_navigation_and_scripts(load: Loader) -> None:
    page = """<!doctype html><html><head><title>Hours - Halden Street</title><meta charset="windows-1252">
        <link rel="canonical" href="https://halden.example/hours">
        <meta property="article:modified_time" content="2026-03-01T10:00:00+01:00">
        <style>p {color: red}</style><script>track("visitor")</script></head>
        <body><header><a href="/">Logo</a></header><nav><ul><li>Home</li></ul></nav>
        <main><h1>Opening <em>hours</em></h1><p>Open
          from <b>9</b>:30. Caf\xe9 inside.</p><table><tr><th>Day</th><th>Until</th></tr>
          <tr><td>Friday</td><td>16:00</td></tr></table><ul><li>Ring twice</li><li>Mind the step</li></ul>
          <form><button>Book</button></form><p hidden>secret draft</p></main>
        <aside>Buy our tea</aside><footer>Imprint</footer></body></html>"""
    record = only(load({"hours.html": page.encode("windows-1252")}))
    assert record.title == "Opening hours"
    assert record.text == (
        "Opening hours\n\nOpen from 9:30. Café inside.\n\n"
        "Day | Until\nFriday | 16:00\n\nRing twice\nMind the step"
    )
    assert record.url == "https://halden.example/hours"
    assert record.last_updated == datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_a_page_without_landmarks_keeps_all_its_text(load: Loader) -> None:
    record = only(load({"short.htm": "<title>Short</title><p>One.<br>Two &amp; three.<div>Four</div>"}))
    assert (record.title, record.text) == ("Short", "One.\nTwo & three.\n\nFour")


def test_pdf_pages_are_read_in_order_and_blank_ones_reported(load: Loader) -> None:
    loaded = load({"guide.pdf": pdf("First page", "", "Third page", title="House guide")})
    record = only(loaded)
    assert (record.title, record.text) == ("House guide", "First page\n\nThird page")
    assert record.metadata == {"pages": 3}
    assert record.last_updated == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    (note,) = loaded[1].notes
    assert "no text on page 2 of 3" in note.what


def test_a_pdf_that_only_forbids_printing_is_read(load: Loader) -> None:
    assert only(load({"open-secret.pdf": pdf("Readable", password="")})).text == "Readable"


def test_a_title_that_is_a_file_name_is_ignored(load: Loader) -> None:
    assert only(load({"menu.pdf": pdf("Soup", title="Microsoft Word - draft3.docx")})).title == "Menu"


def test_word_paragraphs_and_tables_stay_in_order(load: Loader) -> None:
    def fill(document: Any) -> None:
        document.add_paragraph("Before the heading.")
        document.add_heading("Photo room", 1)
        table = document.add_table(2, 2)
        for row, cells in enumerate((("Item", "Place"), ("Camera", "Shelf A1"))):
            for column, words in enumerate(cells):
                table.cell(row, column).text = words
        document.add_paragraph("After the table.")

    record = only(load({"room.docx": word(fill, title="Property title")}))
    assert record.title == "Photo room"
    assert record.text == (
        "Before the heading.\n\nPhoto room\n\nItem | Place\nCamera | Shelf A1\n\nAfter the table."
    )
    assert record.last_updated == datetime(2026, 4, 5, 6, 7, 8, tzinfo=UTC)


def test_a_word_document_without_headings_takes_its_title_from_its_properties(load: Loader) -> None:
    record = only(load({"x.docx": word(lambda document: document.add_paragraph("Text"), title="The plan")}))
    assert record.title == "The plan"


def test_each_table_row_becomes_a_record(load: Loader) -> None:
    table = "Title;Text;Tags;Type;Last updated;Shelf;metadata\n"
    table += 'Camera;"Full frame; two bodies";"photo, loan";doc;2026-10-01;A1;\n'
    table += ';Only "text" here;;;;;\n\n'
    table += 'Camera;;;link;;B2;"{""serial"": [7]}"\n'
    records, summary = load({"kit/list.csv": "﻿" + table})
    assert not summary.problems
    camera = records["doc:camera"]
    assert (camera.text, camera.tags) == ("Full frame; two bodies", ("photo", "loan"))
    assert camera.last_updated == datetime(2026, 10, 1, tzinfo=UTC)
    assert camera.metadata == {"Shelf": "A1"}
    assert records["doc:only-text-here"].title == 'Only "text" here'
    # Without a text column, the other cells of the row can be searched.
    assert records["link:camera"].text == "Shelf: B2"
    assert records["link:camera"].metadata == {"Shelf": "B2", "serial": [7]}


def test_rows_with_the_same_name_get_different_ids(load: Loader) -> None:
    records, _ = load({"list.csv": "title,text\nLamp,one\nLamp,two\n"})
    assert {id_: record.text for id_, record in records.items()} == {"doc:lamp": "one", "doc:lamp-2": "two"}


CARDS = """\
BEGIN:VCARD
VERSION:3.0
N:Inkwell;Ines;;;
FN:Ines Inkwell
ORG:Halden Street Studio;Print
TITLE:Printer\\, senior
EMAIL;TYPE=INTERNET,WORK:ines@halden.example
TEL;TYPE=CELL:+1 555 0100
URL:https://ines.example
item1.URL:https://uk.linkedin.com/in/halden-sample-ines
item1.X-ABLabel:LinkedIn
NOTE:Paper and ink.\\nNever on Mon
 days.
CATEGORIES:print,lead
REV:2026-10-01T12:00:00Z
PHOTO;ENCODING=b;TYPE=JPEG:AAAA
END:VCARD
BEGIN:VCARD
VERSION:4.0
FN:Ömer Serif
EMAIL;PREF=1:mailto:omer@halden.example
TEL;VALUE=uri;TYPE="voice,home":tel:+1-555-0101
ROLE:Photographer
X-SOCIALPROFILE;TYPE=linkedin:linkedin.com/in/halden-sample-omer
REV:20261002T120000Z
END:VCARD
BEGIN:VCARD
VERSION:2.1
N:Vellum;Mara
FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=A1ra Vellum
END:VCARD
"""


def test_vcards_become_person_records(load: Loader) -> None:
    records, summary = load({"contacts.vcf": CARDS.replace("\n", "\r\n")})
    assert not summary.problems
    ines = records["person:ines-inkwell"]
    assert ines == Record(
        id="person:ines-inkwell",
        title="Ines Inkwell",
        text="Ines Inkwell, Printer, senior, Print, Halden Street Studio.\n"
        "Paper and ink.\nNever on Mondays.\n"
        "E-mail: ines@halden.example\nPhone: +1 555 0100\n"
        "Links: https://ines.example, https://uk.linkedin.com/in/halden-sample-ines",
        type="person",
        tags=("print", "lead"),
        url="https://ines.example",
        source_type="directory",
        last_updated=datetime(2026, 10, 1, 12, tzinfo=UTC),
        metadata={
            "emails": ["ines@halden.example"],
            "phones": ["+1 555 0100"],
            "organisation": "Halden Street Studio",
            "unit": "Print",
            "job_title": "Printer, senior",
            "linkedin": "https://uk.linkedin.com/in/halden-sample-ines",
            "urls": ["https://ines.example", "https://uk.linkedin.com/in/halden-sample-ines"],
        },
    )
    omer = records["person:ömer-serif"]
    assert omer.metadata["linkedin"] == omer.url == "https://linkedin.com/in/halden-sample-omer"
    assert (omer.metadata["emails"], omer.metadata["phones"]) == (["omer@halden.example"], ["+1-555-0101"])
    assert omer.text.startswith("Ömer Serif, Photographer.")
    assert records["person:mára-vellum"].title == "Mára Vellum"


def test_a_url_that_only_looks_like_linkedin_is_no_profile(load: Loader) -> None:
    card = "BEGIN:VCARD\nVERSION:3.0\nFN:X\nURL:https://linkedin.com.evil.example/in/x\nEND:VCARD\n"
    assert "linkedin" not in only(load({"x.vcf": card})).metadata


NESTED = "<div>" * 100_000 + "deep"


def bomb() -> bytes:
    """Create a small archive that would unpack to 300 MB."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("word/document.xml", "w", force_zip64=True) as entry,
    ):
        for _ in range(300):
            entry.write(bytes(1_000_000))
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "line", "what", "remedy"),
    [
        ("x.pdf", b"%PDF-1.7 but not really", None, "cannot be read as pdf", "save it again"),
        ("x.pdf", lambda: pdf("Text", password="secret"), None, "encrypted", "qpdf --decrypt"),
        ("x.pdf", lambda: pdf("", ""), None, "seems to be scanned", "ocrmypdf"),
        ("x.docx", b"PK nothing", None, "not a complete Word document", "save it as .docx"),
        ("x.docx", bomb, None, "unpacks to 300 MB", "check its origin"),
        ("x.txt", "caf\xe9".encode("latin-1"), None, "not in UTF-8", "iconv"),
        ("x.md", "caf\xe9".encode("latin-1"), None, "not in UTF-8", "iconv"),
        ("x.txt", b"a\0b", None, "zero bytes", "save it as text"),
        ("x.txt", b"", None, "is empty", "delete it"),
        ("x.txt", b" \n ", None, "white space", "delete it"),
        ("x.html", "<p></p><script>render()</script>", None, "no text of its own", "from a browser"),
        ("x.html", NESTED, None, "Excessive depth", "from a browser"),
        ("x.csv", "name,price\na,1\n", 1, "no column `title` or `text`", "title,text,tags"),
        ("x.csv", 'title,text\na,b\nc,"d\n', 3, "unexpected end of data", "quotation mark"),
        ("x.csv", b"title,text\na,b\n\xe9,c\n", 3, "not in UTF-8", "iconv"),
        ("x.csv", "title,text\na,b,c\n", 2, "3 cells", "quotation marks"),
        ("x.csv", "title,text,place\n,,here\n", 2, "neither a title nor a text", "fill in"),
        ("x.csv", "title,metadata\na,[]\n", 2, "not a JSON object", '{"name"'),
        ("x.csv", "title,title\na,b\n", 1, "two columns 'title'", "rename"),
        (
            "x.jsonl",
            '{"title": "a"}\n{"title": \n',
            2,
            "not JSON (column 10: Expecting value)",
            "fix or remove the line",
        ),
        ("x.jsonl", '{"title": "a", "title": "b"}', 1, "occurs more than once", "fix or remove the line"),
        ("x.jsonl", '{"title": "\\ud800"}', 1, "surrogate", "fix or remove the line"),
        ("x.jsonl", '["title"]', 1, "not a record", "an object"),
        ("x.jsonl", '{"title": "a", "id": "a b"}', 1, "without spaces", "in the file"),
        ("x.jsonl", '{"id": "doc:a"}\n{"id": "doc:a"}', 2, "used twice in this file", "a different id"),
        ("x.md", "---\ntitle: a\nbad: [1\n---\ntext", 3, "front matter", "that line"),
        ("x.md", "---\na: &a [1]\nb: [*a, *a]\n---\ntext", 3, "aliases", "that line"),
        ("x.md", "---\ntype: persn\n---\ntext", None, "'persn' is unknown", "person"),
        ("x.md", "---\nid: person:a\ntype: doc\n---\ntext", None, "disagree", "change one"),
        ("x.md", "---\nnamespace: personal\n---\ntext", None, "has no owner", "--owner"),
        ("x.md", "---\nnamespace: studio\nowner: a\n---\ntext", None, "owner", "remove the owner"),
        ("x.md", "---\nurl: javascript:alert(1)\n---\ntext", None, "not a web or mail address", "https://"),
        (
            "x.md",
            "---\nlinkedin: https://evil.example/in/a\n---\ntext",
            None,
            "linkedin.com",
            "full address",
        ),
        ("x.md", "---\nlast_updated: yesterday\n---\ntext", None, "not a date", "2026-10-31"),
        ("x.md", "---\ntitle: [a]\n---\ntext", None, "title is not text", "quotation marks"),
        ("x.md", "---\nmetadata: {a: .nan}\n---\ntext", None, "is not JSON", "as text"),
        ("x.vcf", "hello", 1, "no card", "BEGIN:VCARD"),
        ("x.vcf", CARDS + "BEGIN:VCARD\nFN\nEND:VCARD\n", 32, "cannot be read", "export that contact"),
        ("x.vcf", "BEGIN:VCARD\nFN:Cut off\n", 1, "never closed", "export that contact"),
        ("x.vcf", "BEGIN:VCARD\nVERSION:3.0\nEMAIL:a@b.example\nEND:VCARD\n", 1, "no name", "FN:"),
    ],
)
def test_problems_are_reported_with_place_and_fix_and_the_rest_is_loaded(
    load: Loader, name: str, content: Any, line: int | None, what: str, remedy: str
) -> None:
    records, summary = load({name: content() if callable(content) else content, "good.md": "Good."})
    (problem,) = summary.problems
    assert Path(problem.path).name == name
    assert problem.line == line
    assert what in problem.what
    assert remedy in problem.remedy
    assert records["doc:good"].text == "Good."


def test_a_file_over_the_size_limit_is_not_read(load: Loader, tmp_path: Path) -> None:
    with (tmp_path / "files" / "huge.txt").open("wb") as file:
        file.truncate(70_000_000)
    _, summary = load({"good.md": "Good."})
    (problem,) = summary.problems
    assert "its size is 70 MB; the limit for its format is 64 MB" in problem.what
    assert (summary.added, summary.failed) == (1, 1)


def test_valid_lines_of_a_broken_file_are_loaded_and_broken_lines_reported_every_time(load: Loader) -> None:
    files: dict[str, str | bytes] = {"x.jsonl": '{"title": "One"}\nbroken\n{"title": "Three"}\n'}
    for _ in range(2):
        records, summary = load(files)
        assert sorted(records) == ["doc:one", "doc:three"]
        assert [problem.line for problem in summary.problems] == [2]


def test_at_most_a_hundred_broken_lines_are_reported(load: Loader) -> None:
    _, summary = load({"x.jsonl": "broken\n" * 1_000})
    assert len(summary.problems) == 101
    assert summary.problems[-1].what == "900 more entries like these"
