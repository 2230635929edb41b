"""Plots of a report as SVG, on white and with letters as paths, so that they look the same anywhere.

matplotlib is pinned with the peers and imported when a plot is drawn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bench.report import FilledTable

OURS, OTHERS = ("#1f6fb2", "#8fbfe6", "#cfe4f5"), ("#93a1b0", "#cdd6df", "#e8edf2")
"""Colours of the first, second and third series: Jackfield, and the others."""
INK, LINES = "#1c2733", "#dfe5eb"
WIDTH = 7.6
LABEL = 44
"""The number of characters in a line of a label."""

CALL_SIZES = {"call": "five long results", "call-one": "one short result", "call-empty": "an empty result"}
"""The tables of a governed call, with the size of the result."""

Tables = Mapping[str, FilledTable]


class Plot(NamedTuple):
    """A plot: its title, its tables, and the function that draws it."""

    title: str
    needs: tuple[str, ...]
    draw: Callable[[Any, Tables], None]
    height: float


def draw(tables: Tables, folder: Path) -> list[Path]:
    """Draw the plots with available figures; return the written files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _draw(plot, tables, folder / f"{name}.svg")
        for name, plot in PLOTS.items()
        if all(need in tables for need in plot.needs)
    ]


def _draw(plot: Plot, tables: Tables, path: Path) -> Path:
    look = {
        "svg.fonttype": "path", "svg.hashsalt": plot.title, "font.size": 10, "text.color": INK,
        "axes.labelcolor": INK, "axes.edgecolor": LINES, "axes.axisbelow": True, "axes.spines.top": False,
        "axes.spines.right": False, "grid.color": LINES, "xtick.color": INK, "ytick.color": INK,
    }  # fmt: skip
    with import_module("matplotlib").rc_context(look):
        figure = import_module("matplotlib.figure").Figure((WIDTH, plot.height), dpi=72, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.15, h_pad=0.12)
        figure.patch.set_alpha(0)
        figure.suptitle(plot.title, fontsize=12, fontweight="bold")
        figure.add_artist(_card(figure.bbox.width, figure.bbox.height))
        plot.draw(figure, tables)
        # Without a date: the same figures give the same file.
        figure.savefig(path, format="svg", metadata={"Date": None, "Title": plot.title})
    return path


def _card(width: float, height: float) -> Any:
    patches, transforms = import_module("matplotlib.patches"), import_module("matplotlib.transforms")
    return patches.FancyBboxPatch(
        (0, 0), width, height, boxstyle="round,pad=0,rounding_size=9", facecolor="white",
        edgecolor="none", transform=transforms.IdentityTransform(), zorder=-10,
    )  # fmt: skip


def _label(row: str) -> str:
    """Return the name of a row without its Markdown, in short lines."""
    return textwrap.fill(row.replace("**", "").replace("`", ""), LABEL)


def _ours(row: str) -> bool:
    """Return whether a row is the one to highlight."""
    return "**" in row


def _colour(row: str, series: int) -> str:
    if _ours(row):
        return OURS[series]
    # Another form of Jackfield: distinguished from the others, but not highlighted.
    return OURS[1] if row.startswith("Jackfield") else OTHERS[series]


def _bars(axes: Any, columns: Sequence[Mapping[str, float]], form: str, *, log: bool = False) -> None:
    """Draw horizontal bars, the first row on top; each row has a bar for every column."""
    rows = [row for row in columns[0] if all(row in column for column in columns)]
    thickness = 0.72 / len(columns)
    for number, column in enumerate(columns):
        places = [place + (number - (len(columns) - 1) / 2) * thickness for place in range(len(rows))]
        colours = [_colour(row, number) for row in rows]
        bars = axes.barh(places, [column[row] for row in rows], thickness * 0.92, color=colours)
        axes.bar_label(bars, [format(column[row], form) for row in rows], padding=3, fontsize=9)
    axes.set_yticks(range(len(rows)), [_label(row) for row in rows], fontsize=9)
    for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if _ours(row) else "normal")
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(import_module("matplotlib.ticker").FormatStrFormatter("%g"))
    low, high = (pick(value for column in columns for value in column.values()) for pick in (min, max))
    # Room for the figure at the end of the longest bar; the shortest one stays visible.
    axes.set_xlim(*((low / 2, high * 2) if log else (0, high * 1.12)))


def _legend(axes: Any, labels: Sequence[str]) -> None:
    """Add a legend for the darker and the lighter bars."""
    patch = import_module("matplotlib.patches").Patch
    colours = OURS[: len(labels)]
    handles = [patch(color=colour, label=label) for colour, label in zip(colours, labels, strict=True)]
    axes.legend(handles=handles, frameon=False, fontsize=9, loc="lower right")


def _call(figure: Any, tables: Tables) -> None:
    axes = figure.add_subplot()
    _bars(axes, [tables[name].column("plain = 1") for name in CALL_SIZES], ".2f", log=True)
    axes.set_xlabel("CPU time of the whole process, a plain call = 1 (logarithmic)")
    _legend(axes, [*CALL_SIZES.values()])


def _growth(figure: Any, tables: Tables) -> None:
    by_tools, by_turns = figure.subplots(1, 2, sharey=True)
    for heading, colour in zip(tables["tools"].table.columns, (OURS[0], OTHERS[0]), strict=True):
        column = tables["tools"].column(heading)
        label = heading.partition(" (")[0]
        by_tools.plot([int(count) for count in column], [*column.values()], "o-", color=colour, label=label)
    by_tools.set_xscale("log")
    by_tools.set_xticks([int(row) for row in tables["tools"].rows], [*tables["tools"].rows])
    by_tools.minorticks_off()
    by_tools.set_xlabel("tools installed")
    by_tools.set_ylabel("CPU time of a call, first = 1")
    by_tools.legend(frameon=False, fontsize=9, loc="lower left")
    (heading,) = tables["turns"].table.columns
    column = tables["turns"].column(heading)
    by_turns.plot([int(turns.split()[-1]) for turns in column], [*column.values()], "o-", color=OURS[0])
    by_turns.set_xlabel("earlier turns in the session")
    for axes in (by_tools, by_turns):
        axes.grid(axis="y")
    highest = max(by_tools.get_ylim()[1], by_turns.get_ylim()[1])
    by_tools.set_ylim(0, max(1.5, highest * 1.1))


def _sound(figure: Any, tables: Tables) -> None:
    axes = figure.add_subplot()
    headings = ["from the model, us", "to the model, us"]
    _bars(axes, [tables["sound"].column(heading) for heading in headings], ".0f")
    axes.set_xlabel("CPU time, microseconds")
    _legend(axes, [heading.removesuffix(", us") for heading in headings])


def _host(figure: Any, tables: Tables) -> None:
    axes = figure.add_subplot()
    _bars(axes, [tables["host"].column("us per frame")], ".0f")
    axes.set_xlabel("CPU time of the server, microseconds")


def _waits(figure: Any, tables: Tables) -> None:
    axes = figure.add_subplot()
    _bars(axes, [tables["waits"].column("ms")], ".2f", log=True)
    axes.set_xlabel("milliseconds (logarithmic)")


def _finding(figure: Any, tables: Tables) -> None:
    axes = figure.add_subplot()
    filled = tables["quality"]
    headings = list(filled.table.columns)
    thickness = 0.8 / len(headings)
    for number, (heading, colour) in enumerate(zip(headings, (OTHERS[1], OTHERS[0], OURS[0]), strict=True)):
        places = [place + (number - (len(headings) - 1) / 2) * thickness for place in range(len(filled.rows))]
        values = [*filled.column(heading).values()]
        bars = axes.bar(places, values, thickness * 0.92, color=colour, label=heading)
        axes.bar_label(bars, [f"{value:.2f}".lstrip("0") for value in values], padding=2, fontsize=9)
    axes.set_xticks(range(len(filled.rows)), [_label(row) for row in filled.rows])
    axes.set_ylim(0, 1.25)
    axes.set_ylabel("nDCG@10")
    axes.grid(axis="y")
    axes.legend(frameon=False, fontsize=9, loc="upper center", ncols=len(headings))


PLOTS = {
    "call": Plot("A governed call compared with a plain call and other projects", (*CALL_SIZES,), _call, 6.4),
    "growth": Plot(
        "CPU time of a call with more tools and in longer sessions", ("tools", "turns"), _growth, 3.0
    ),
    "sound": Plot("Transferring 20 ms of audio between a session and a model", ("sound",), _sound, 4.6),
    "host": Plot("Receiving and sending one audio frame on the host, 40 callers", ("host",), _host, 2.2),
    "waits": Plot("How long a client waits", ("waits",), _waits, 3.4),
    "finding": Plot("Search quality: words, meaning, and both together", ("quality",), _finding, 3.2),
}
"""By file name; docs/images has them as bench-NAME.svg."""
