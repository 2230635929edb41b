"""The benchmark report, and its agreement with docs/benchmarks.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from bench import __main__ as command
from bench import before, goals, plots, published, report_files
from bench.benchmarks import BENCHMARKS, Benchmark
from bench.goals import EVERY, FIRST, Goal
from bench.report import Duration, FilledTable, Report, RunOptions, Table
from bench.subprocesses import ProgramError

ROOT = Path(__file__).parents[1]
PAGE = "\n".join(path.read_text("utf-8") for path in published.DOCUMENTATION)
"""All pages of benchmarks."""
TABLES = [table for part in BENCHMARKS.values() for table in part.tables]
ROWS = {
    "tools": ("5", "50", "500"),
    "turns": ("1 to 50", "451 to 500", "951 to 1000"),
}
FACTS = {"cores": "2", "Python": "3.11"}


@pytest.fixture
def report() -> Report:
    """Return a report in which every table has two or three rows of invented figures."""
    made = Report()
    for number, table in enumerate(TABLES, 1):
        names = ROWS.get(table.name, ("a peer", "**Jackfield**, `all` of it & <more>"))
        rows = {
            name: [number + place / 7 for place, _ in enumerate(table.columns)]
            for number, name in enumerate(names, 1)
        }
        made.table(table, f"Made up, {number}.", rows)
    made.note("Startup", "A sentence.")
    made.spent.append(Duration("start", 1.5, 0.5))
    return made


def tables_of(page: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return each table of a page: its section, and the headings of its columns."""
    found, section, previous = [], "", ""
    for line in page.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if re.fullmatch(r"\|( --- \|)+", line):
            found.append((section, tuple(cell.strip() for cell in previous.strip("|").split("|"))))
        previous = line
    return found


def test_every_table_of_the_page_is_filled_by_a_benchmark() -> None:
    unmarked = tables_of(published.MARKED.sub("", PAGE))
    assert set(unmarked) <= {(table.section, table.headings) for table in TABLES}
    shown = set(tables_of(PAGE)) - set(unmarked)
    assert len(shown) > 10
    views = {published.VIEWS[name](published.read()) for name in published.VIEWS}
    summaries = {headings for view in views for _, headings in tables_of(view)}
    assert {each for each in shown if each[1] not in summaries} <= {
        (table.section, table.headings) for table in TABLES
    }


def test_every_mark_of_a_page_has_a_benchmark_and_is_in_its_section() -> None:
    sections = {table.name: table.section for table in TABLES}
    marks = {
        path: re.findall(r"<!-- bench (\S+): (?:begin|end) -->", path.read_text("utf-8"))
        for path in published.PAGES
    }
    for names in marks.values():
        assert names, "a page without a mark needs no update"
        # A mark without its counterpart would never be filled.
        assert names[::2] == names[1::2]
        assert len(set(names)) * 2 == len(names)
        assert set(names) <= {*sections, *published.VIEWS}
    section = ""
    for line in PAGE.splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if (found := re.fullmatch(r"<!-- bench (\S+): begin -->", line)) and found[1] in sections:
            assert sections[found[1]] == section


def test_the_pages_show_the_published_figures() -> None:
    document = published.read()
    for path in published.PAGES:
        text = path.read_text("utf-8")
        assert published.generated(text, document) == text, "write no figure by hand: --update-docs does it"


def test_every_earlier_figure_stands_beside_a_published_one() -> None:
    known = published.filled(published.read())
    assert before.EARLIER
    for each in before.EARLIER:
        assert each.row in known[each.table].column(each.column), each
    shown = published.VIEWS["before"](published.read())
    assert shown.count("\n") == len(before.EARLIER) + 2


def test_an_earlier_figure_is_compared_with_the_figure_of_the_last_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table("t", "Section", "what", {"us": ".1f"})
    ours, theirs = (before.Earlier(row, "t", row, "us", 4.0) for row in ("ours", "theirs"))
    monkeypatch.setattr(before, "EARLIER", (ours, theirs, ours._replace(table="gone")))
    lines = before.comparison({"t": FilledTable(table, "", {"ours": (3.0,)})}).splitlines()
    assert lines[2:] == [
        "| Section | ours | us | 4.0 | 3.0 | 0.75 |",
        "| Section | theirs | us | 4.0 |  |  |",
    ]


def test_every_section_of_the_page_is_measured_and_every_image_is_a_plot() -> None:
    sections = set(re.findall(r"^## (.+)$", PAGE, re.MULTILINE))
    assert sections == {table.section for table in TABLES} | {"Goals", "Runs", "Before and after"}
    pictures = set(re.findall(r"!\[.{20,}\]\(images/bench-(\w+)\.svg\)", PAGE))
    assert pictures == set(plots.PLOTS)
    assert len({table.name for table in TABLES}) == len(TABLES)
    assert {need for plot in plots.PLOTS.values() for need in plot.needs} <= {table.name for table in TABLES}


def test_every_goal_is_about_a_figure_that_is_measured() -> None:
    document = published.read()["tables"]
    for goal in goals.GOALS:
        assert goal.column in published.tables()[goal.table].columns, goal
        if goal.table in document:
            rows = document[goal.table]["figures"]
            assert goal.row == EVERY or goal.row in rows, goal
            assert goal.of in ("", FIRST) or goal.of in rows, goal


def test_the_report_holds_every_table_and_figure(report: Report, tmp_path: Path) -> None:
    report_files.write(report, tmp_path / "new", FACTS, RunOptions(3))
    text = (tmp_path / "new" / "benchmarks.md").read_text("utf-8")
    assert sorted(tables_of(text)[:-1]) == sorted((table.section, table.headings) for table in TABLES)
    # Results of a section appear under it once, in the order of measurement.
    assert text.count("\n## Startup\n") == 1
    assert text.index("A sentence.") < text.index("\n## Building\n")
    assert "- cores: 2\n" in text
    assert "| all | 2 | 0 | |" in text
    kept = json.loads((tmp_path / "new" / "figures.json").read_text("utf-8"))
    assert kept["machine"] == FACTS
    assert kept["parts"]["start"] == {"seconds": 1.5, "cpu_seconds": 0.5, "failure": None}
    for name, filled in report.tables.items():
        for row, values in filled.rows.items():
            assert list(kept["tables"][name]["figures"][row].values()) == values


def test_a_missing_figure_is_left_empty(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("t", "Section", "what", {"us": ".1f", "ratio": ".2f"})
    filled = FilledTable(table, "Caption.", {"one": (1.26, None), "two": (2, 0.5)})
    assert filled.markdown().splitlines()[-2:] == ["| one | 1.3 |  |", "| two | 2.0 | 0.50 |"]
    assert filled.column("ratio") == {"two": 0.5}
    Report().table(*filled)
    assert capsys.readouterr().out.startswith("## Section\n\nCaption.\n\n| what | us | ratio |\n")


GOAL_TABLE = Table("t", "Section", "what", {"us": ".1f", "per second": ",.0f"})


def test_a_table_shows_its_goals_met_and_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = (
        Goal("t", "ours", "us", 12),
        Goal("t", "ours", "us", 0.5, of="peer", text="at most half of peer"),
        Goal("t", "ours", "per second", 8000, at_least=True),
        Goal("t", "ours", "us", 1.0, of="gone", text="below what is gone"),
        Goal("other", "ours", "us", 1),
    )
    monkeypatch.setattr(goals, "GOALS", made)
    filled = FilledTable(GOAL_TABLE, "Caption.", {"peer": (30, 1), "ours": (13, 9000)})
    head, _, peer, ours = filled.markdown().splitlines()[2:]
    assert head == "| what | us | per second | goal |"
    assert peer == "| peer | 30.0 | 1 |  |"
    assert ours == (
        "| ours | 13.0 | 9,000 | us: at most 12: **missed**; at most half of peer: met; "
        "per second: at least 8,000: met; below what is gone: not measured |"
    )


def test_a_goal_for_every_row_is_judged_by_the_worst_one() -> None:
    flat = Goal("t", EVERY, "us", 1.1, of=FIRST)
    grown = {"1": {"us": 10.0}, "2": {"us": 10.9}, "3": {"us": 11.5}, "4": {"us": 10.0}}
    assert goals.verdict(flat, grown)[1:] == ("3", 11.5, False)
    assert goals.verdict(flat, {**grown, "3": {"us": None}})[1:] == ("2", 10.9, True)
    assert goals.verdict(flat, {})[1:] == (EVERY, None, None)
    fast = Goal("t", EVERY, "us", 10.5, at_least=True)
    assert goals.verdict(fast, grown)[1:] == ("4", 10.0, False)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a page and published figures of its own, of two parts."""
    other = Table("other", "Section", "what", {"us": ".1f"})
    both = {
        "one": Benchmark(_fill(GOAL_TABLE, 13), (GOAL_TABLE,)),
        "two": Benchmark(_fill(other, 2), (other,)),
    }
    monkeypatch.setattr(command, "BENCHMARKS", both)
    monkeypatch.setattr(published, "BENCHMARKS", both)
    monkeypatch.setattr(goals, "GOALS", (Goal("t", "ours", "us", 12), Goal("other", "ours", "us", 1.5)))
    monkeypatch.setattr(plots, "PLOTS", {})
    page = tmp_path / "page.md"
    marks = "".join(
        f"Prose before {name}.\n\n<!-- bench {name}: begin -->\n<!-- bench {name}: end -->\n\n"
        for name in ("goals", "runs", "t", "other")
    )
    page.write_text(marks, "utf-8")
    monkeypatch.setattr(published, "PAGES", (page,))
    monkeypatch.setattr(published, "FIGURES", tmp_path / "figures.json")
    old = {"caption": "Old.", "first": "what", "figures": {"ours": {"us": 1.0}}, "notes": []}
    gone = {"parts": {"gone": {}}, "tables": {"other": old, "gone": old}}
    published.FIGURES.write_text(json.dumps(gone), "utf-8")
    return tmp_path


def _fill(table: Table, figure: float) -> Callable[[Report, RunOptions], None]:
    def run(report: Report, _: RunOptions) -> None:
        report.table(
            table, "New.", {"peer": [1.0] * len(table.columns), "ours": [figure] * len(table.columns)}
        )
        report.note(table.section, f"A note on {table.name}.")

    return run


def test_a_run_updates_the_marked_places_of_its_parts_only(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "one", "--report", str(site / "report"), "--update-docs"])
    assert command.main() == 0
    page = (site / "page.md").read_text("utf-8")
    assert "New.\n\n| what | us | per second | goal |" in page
    assert "| ours | 13.0 | 13 | at most 12: **missed** |" in page
    assert "A note on t.\n\nGoals missed: ours: 13.0 (us), the goal is at most 12.\n" in page
    # The other part was not run: its figures stay as they were.
    assert "Old.\n\n| what | us | goal |\n| --- | --- | --- |\n| ours | 1.0 | at most 1.5: met |" in page
    assert "1 of 2 goals are met." in page
    assert page.count("Prose before") == 4
    assert re.search(r"^\| one \| 20\d\d-", page, re.MULTILINE)
    kept = published.read()
    assert list(kept["tables"]) == ["t", "other"]
    assert list(kept["parts"]) == ["one"]
    assert published.generated(page, kept) == page


def test_a_run_without_the_option_updates_nothing(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.read_bytes() for path in site.iterdir()}
    monkeypatch.setattr(sys, "argv", ["bench", "--report", str(site / "report")])
    assert command.main() == 0
    assert {path: path.read_bytes() for path in before} == before


def test_a_table_whose_columns_changed_is_shown_as_not_measured(site: Path) -> None:
    document = {**published.read(), "parts": {}}
    document["tables"]["t"] = {
        "caption": "Old.",
        "first": "what",
        "figures": {"ours": {"ms": 1.0}},
        "notes": [],
    }
    page = published.generated((site / "page.md").read_text("utf-8"), document)
    assert "Not measured yet. To measure it, run `nox -s bench -- one --update-docs`.\n" in page
    assert "| Section | ours | us |  | at most 12 | not measured |" in page


def test_a_part_on_request_runs_only_if_it_is_asked_for(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = Table("counted", "Section", "what", {"instructions": ".0f"})
    made = {
        "one": Benchmark(_fill(GOAL_TABLE, 13), (GOAL_TABLE,)),
        "two": Benchmark(_fill(GOAL_TABLE, 14), (GOAL_TABLE,)),
        "instructions": Benchmark(_fill(counted, 7), (counted,), on_request=True),
    }
    monkeypatch.setattr(command, "BENCHMARKS", made)
    for arguments, wanted in (
        ([], ["one", "two"]),
        (["two", "--instructions"], ["two", "instructions"]),
        (["instructions"], ["instructions"]),
    ):
        monkeypatch.setattr(sys, "argv", ["bench", *arguments, "--report", str(site / "report")])
        assert command.main() == 0
        assert re.findall(r"^(\w+): \d+ s, ", capsys.readouterr().out, re.MULTILINE) == wanted


def test_a_failing_benchmark_reports_the_reason_and_the_others_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table("t", "Section", "what", {"us": ".1f"})

    def broken(_: Report, __: RunOptions) -> None:
        raise ProgramError("bench.nowhere failed: there is no disk left")

    def whole(report: Report, asked: RunOptions) -> None:
        report.table(table, "Caption.", {"rounds": [asked.rounds]})

    monkeypatch.setattr(
        command, "BENCHMARKS", {"broken": Benchmark(broken, ()), "whole": Benchmark(whole, (table,))}
    )
    monkeypatch.setattr(plots, "PLOTS", {})
    monkeypatch.setattr(sys, "argv", ["bench", "--rounds", "4", "--report", str(tmp_path)])
    assert command.main() == 1
    told = capsys.readouterr()
    assert "failed: broken: bench.nowhere failed: there is no disk left" in told.err
    assert "| rounds | 4.0 |" in told.out
    assert "there is no disk left" in (tmp_path / "benchmarks.md").read_text("utf-8")
    monkeypatch.setattr(sys, "argv", ["bench", "whole", "--report", str(tmp_path)])
    assert command.main() == 0


def test_a_failing_program_is_named_with_its_last_output() -> None:
    from bench.subprocesses import run_module

    with pytest.raises(ProgramError, match=r"bench\.nowhere failed: .*No module named"):
        run_module("nowhere")


def test_plots_show_the_available_figures_and_are_svg(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "settings"))
    pytest.importorskip("matplotlib", reason="it comes with the peers: `nox -s bench` runs this test as well")
    some = {name: filled for name, filled in report.tables.items() if name != "waits"}
    drawn = plots.draw(some, tmp_path / "one")
    assert [plot.stem for plot in drawn] == [name for name in plots.PLOTS if name != "waits"]
    for plot in drawn:
        root = ET.parse(plot).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        # Letters are paths, so that a plot looks the same with any fonts.
        assert root.findall(".//{*}text") == []
        assert len(root.findall(".//{*}path")) > 20
        assert not re.search(r'(href|src)="(?!#)', plot.read_text("utf-8"))
    again = plots.draw(some, tmp_path / "two")
    assert [plot.read_bytes() for plot in again] == [plot.read_bytes() for plot in drawn]


def test_only_the_plots_of_a_run_are_copied_to_the_docs(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "settings"))
    pytest.importorskip("matplotlib", reason="it comes with the peers: `nox -s bench` runs this test as well")
    images = tmp_path / "images"
    images.mkdir()
    host = report.tables["host"]
    monkeypatch.setattr(command, "IMAGES", images)
    monkeypatch.setattr(published, "update", lambda *_: [])
    monkeypatch.setattr(
        command, "BENCHMARKS", {"host": Benchmark(lambda to, _: to.table(*host), (host.table,))}
    )
    for options in ([], ["--update-docs"]):
        assert list(images.iterdir()) == []
        monkeypatch.setattr(sys, "argv", ["bench", "--report", str(tmp_path / "report"), *options])
        assert command.main() == 0
    assert [path.name for path in images.iterdir()] == ["bench-host.svg"]
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        "benchmarks.md",
        "figures.json",
        "host.svg",
    }


def test_listing_the_benchmarks_imports_no_plotting_library() -> None:
    code = "import sys, bench.__main__; print('matplotlib' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout.strip() == "False"
