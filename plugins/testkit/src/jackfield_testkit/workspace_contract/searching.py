"""What `glob` and `grep` find, in which order, how much of it, and how soon."""

from __future__ import annotations

import os

from jackfield import ErrorType
from jackfield_capability_types.workspace import Search, WorkspaceView

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.trials import refused
from jackfield_testkit.workspace_contract.premises import LARGEST, Premises, on_a_loop

_FILES = ("a.py", "src/a.py", "src/x/b.py", "src/x/c.ts", "lib/d.tsx", "lib/file1.c")
_GLOBS = {
    "*.py": {"a.py"},
    "**/*.py": {"a.py", "src/a.py", "src/x/b.py"},
    "src/**": {"src/a.py", "src/x/b.py", "src/x/c.ts"},
    "**/x/*": {"src/x/b.py", "src/x/c.ts"},
    "**/*.{ts,tsx}": {"src/x/c.ts", "lib/d.tsx"},
    "lib/file?.[ch]": {"lib/file1.c"},
    "*.rs": set(),
}
_ENDLESS_GLOBS = ("*a" * 60 + "b", "**/" * 60 + "b", "[a]*" * 40 + "b")
_ENDLESS_EXPRESSIONS = ("(a*)*b", "(a|a)*b", "(a+)+$b", "(a|aa)+$b")


class SearchingTests:
    """What a search promises."""

    @on_a_loop
    async def test_globs_mean_what_people_expect(self, premises: Premises) -> None:
        """`*` stays within a folder, `**` does not, and `{a,b}` is either."""
        premises.lay_out(dict.fromkeys(_FILES, "x"))
        view = await premises.view()
        for pattern, expected in _GLOBS.items():
            same(await _paths(view, pattern), expected, f"glob({pattern!r})")
        same(await _paths(view, "*.py", "src"), {"src/a.py"}, "glob('*.py') in src")
        await refused(
            view.glob("*", folder="gone"), ErrorType.PERMANENT, "glob() in a folder that is not there"
        )

    @on_a_loop
    async def test_the_latest_change_comes_first_and_all_are_counted(self, premises: Premises) -> None:
        """A limit cuts the list and not the count; each file has its size and a moment with a zone."""
        premises.lay_out(dict.fromkeys("abc", "four"))
        for age, name in enumerate("cab"):
            os.utime(premises.root / name, (1_700_000_000 - age, 1_700_000_000 - age))
        listing = await (await premises.view()).glob("*", limit=2)
        found = [(each.path, each.size, each.modified.timestamp()) for each in listing.files]
        same(found, [("c", 4, 1_700_000_000.0), ("a", 4, 1_699_999_999.0)], "two of three files")
        same(listing.count, 3, "the count of all files")
        holds(all(each.modified.tzinfo for each in listing.files), "a moment has no zone")

    @on_a_loop
    async def test_matches_come_by_path_and_line_with_their_neighbours(self, premises: Premises) -> None:
        """Folder, glob, case, plain text and context narrow and widen a search as they are named."""
        premises.lay_out({"a.py": "one\ntwo\nthree\n", "b/c.py": "zwei\r\ntwo\r\n", "d.md": "two\n(x\n"})
        view = await premises.view()
        found = (await view.grep(Search("^two$", glob="*.py", context=1))).matches
        shown = [(each.path, each.line, each.text, each.before, each.after) for each in found]
        expected = [("a.py", 2, "two", ("one",), ("three",)), ("b/c.py", 2, "two", ("zwei",), ())]
        same(shown, expected, "lines with their neighbours")
        for search, paths in (
            (Search("two", folder="b"), ["b/c.py"]),
            (Search("two", folder="d.md"), ["d.md"]),
            (Search("two", glob="b/*"), ["b/c.py"]),
            (Search("TWO"), []),
            (Search("TWO", ignore_case=True), ["a.py", "b/c.py", "d.md"]),
            (Search("(x", literal=True), ["d.md"]),
        ):
            same([each.path for each in (await view.grep(search)).matches], paths, f"grep({search})")

    @on_a_loop
    async def test_a_search_stops_at_its_limit_and_says_so(self, premises: Premises) -> None:
        """`more` is true when there are more matches, and only then."""
        premises.lay_out(dict.fromkeys("abc", "hit\nmiss\n" * 5))
        view = await premises.view()
        cut = await view.grep(Search("hit", limit=7))
        same((len(cut.matches), cut.files, cut.more), (7, 2, True), "a search that was cut")
        whole = await view.grep(Search("hit", limit=15))
        same((len(whole.matches), whole.files, whole.more), (15, 3, False), "a search that was not")

    @on_a_loop
    async def test_what_was_not_looked_at_is_said(self, premises: Premises) -> None:
        """What is ignored or too large is left out, and a search that finds nothing therefore says so."""
        premises.lay_out({".gitignore": "built/\n", "built/x": "needle", "image": b"\0needle"})
        view = await premises.view()
        nothing = await view.grep(Search("needle"))
        same(nothing.matches, (), "matches in what is ignored or no text")
        holds(nothing.notices, "a search found nothing, left something out, and does not say so")
        same(await _paths(view, "built/*"), set(), "files that are ignored")
        same([each.path for each in (await view.glob("built/*", include_ignored=True)).files], ["built/x"],
             "ignored files that were asked for")  # fmt: skip
        premises.lay_out({"large": "needle\n" * LARGEST})
        large = await view.grep(Search("needle"))
        same(large.matches, (), "matches in a file that is too large")
        holds(large.notices, "a file that is too large was left out in silence")

    @on_a_loop
    async def test_no_pattern_takes_for_ever(self, premises: Premises) -> None:
        """Patterns that make a simple matcher try everything find nothing, or are refused, and soon."""
        premises.lay_out({"a" * 200: "a" * (LARGEST - 1)})
        view = await premises.view()
        for pattern in _ENDLESS_GLOBS:
            same(await _paths(view, pattern), set(), f"glob({pattern[:12]!r}...)")
        for pattern in _ENDLESS_EXPRESSIONS:
            same((await view.grep(Search(pattern))).matches, (), f"grep({pattern!r})")
        await refused(view.grep(Search("(")), ErrorType.PERMANENT, "an expression that is not closed")
        await refused(view.glob("{a,b}" * 20), ErrorType.PERMANENT, "a glob with a million alternatives")


async def _paths(view: WorkspaceView, pattern: str, folder: str = "") -> set[str]:
    return {each.path for each in (await view.glob(pattern, folder=folder)).files}
