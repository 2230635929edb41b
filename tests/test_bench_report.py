"""The benchmark report, and its agreement with docs/benchmarks.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from bench import __main__ as command
from bench import plots, report_files
from bench.benchmarks import BENCHMARKS, Benchmark
from bench.report import Duration, FilledTable, Report, RunOptions, Table
from bench.subprocesses import ProgramError

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
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
    shown = tables_of(PAGE)
    assert len(shown) > 10
    assert set(shown) <= {(table.section, table.headings) for table in TABLES}


def test_every_section_of_the_page_is_measured_and_every_image_is_a_plot() -> None:
    assert set(re.findall(r"^## (.+)$", PAGE, re.MULTILINE)) == {table.section for table in TABLES}
    pictures = set(re.findall(r"!\[.{20,}\]\(images/bench-(\w+)\.svg\)", PAGE))
    assert pictures == set(plots.PLOTS)
    assert len({table.name for table in TABLES}) == len(TABLES)
    assert {need for plot in plots.PLOTS.values() for need in plot.needs} <= {table.name for table in TABLES}


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
