"""What `read` gives back."""

from __future__ import annotations

from jackfield import ErrorType

from jackfield_testkit.store_contract.verdict import same
from jackfield_testkit.trials import refused
from jackfield_testkit.workspace_contract.premises import LARGEST, Premises, on_a_loop

_TEXTS = {
    "empty": (b"", ()),
    "no-end": (b"one", ("one",)),
    "ends": (b"one\ntwo\n", ("one", "two")),
    "crlf": (b"one\r\ntwo\r\n", ("one", "two")),
    "blank": (b"one\n\n", ("one", "")),
    "marked": ("\ufeffgrün\n".encode(), ("grün",)),
    "odd": ("a\u2028b\x0bc\n".encode(), ("a\u2028b\x0bc",)),
}


class ReadingTests:
    """What a session is told of a file."""

    @on_a_loop
    async def test_lines_are_counted_from_one(self, premises: Premises) -> None:
        """A passage is what was asked for, says where it stands, and how long the whole file is."""
        premises.lay_out({"notes/long.txt": "".join(f"line {number}\n" for number in range(1, 11))})
        view = await premises.view()
        passage = await view.read("notes/long.txt", first=4, limit=2)
        found = (passage.path, passage.lines, passage.first, passage.total)
        same(found, ("notes/long.txt", ("line 4", "line 5"), 4, 10), "two lines from the fourth on")
        last = await view.read("./notes//long.txt", first=10)
        same((last.path, last.lines), ("notes/long.txt", ("line 10",)), "the last line, by another spelling")

    @on_a_loop
    async def test_lines_are_what_is_between_line_ends(self, premises: Premises) -> None:
        """Only `\\n` and `\\r\\n` end a line; neither they nor a mark at the beginning belong to the text."""
        premises.lay_out({name: content for name, (content, _) in _TEXTS.items()})
        view = await premises.view()
        for name, (content, lines) in _TEXTS.items():
            passage = await view.read(name)
            same((passage.lines, passage.total), (lines, len(lines)), f"the lines of {content!r}")

    @on_a_loop
    async def test_what_cannot_be_read_is_refused(self, premises: Premises) -> None:
        """A file that is missing, a folder, what lies behind the end and what is no text, in a sentence."""
        premises.lay_out({"folder/file.txt": "x\n", "image.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"})
        view = await premises.view()
        for path in ("nothing.txt", "nowhere/file.txt", "folder", "folder/file.txt/deeper", "image.png"):
            await refused(view.read(path), ErrorType.PERMANENT, f"read({path!r})")
        await refused(view.read("folder/file.txt", first=5), ErrorType.PERMANENT, "read() behind the end")

    @on_a_loop
    async def test_a_file_that_is_too_large_is_neither_read_nor_written(self, premises: Premises) -> None:
        """The limit is one of bytes, and what would pass it leaves everything as it was."""
        large, full = "x" * (LARGEST + 1), "y" * LARGEST
        premises.lay_out({"large.txt": large, "full.txt": full})
        view = await premises.view()
        same((await view.read("full.txt")).lines, (full,), "a file that is just as large as the limit")
        above = "of a file above the limit"
        await refused(view.read("large.txt"), ErrorType.PERMANENT, f"read() {above}")
        await refused(view.edit("large.txt", large, "x"), ErrorType.PERMANENT, f"edit() {above}")
        await refused(view.edit("full.txt", full, large), ErrorType.PERMANENT, "edit() that passes the limit")
        wide = "é" * (LARGEST // 2 + 1)
        await refused(view.write("new.txt", wide), ErrorType.PERMANENT, f"write() {above}")
        same(premises.names(), ["full.txt", "large.txt"], "what is there after refusals")
        same(premises.content("full.txt"), full, "the file whose edit was refused")
