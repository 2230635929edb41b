"""The tables of settings in the documentation, generated from the declarations: `nox -s settings_docs`.

A page asks for a table with two comments: `<!-- settings policies.budgets: begin -->`, and `end` after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jackfield.components import HOOKS
from jackfield.experiments.definition import ExperimentsDocument
from jackfield.plugins import load
from jackfield.settings import KernelSettings, SettingDescription, describe_settings
from jackfield_builder.discovery import discover
from jackfield_host.settings import HostSettings

ROOT = Path(__file__).parents[1]
KERNEL = "kernel"
"""The name of the table with the top-level keys of the settings file."""

EXPERIMENTS = "experiments"
"""The name of the table with the members of the experiments file."""

MARKED = re.compile(
    r"(?P<begin><!-- settings (?P<name>[\w.-]+): begin -->\n).*?(?P<end><!-- settings (?P=name): end -->\n)",
    re.DOTALL,
)
MOST_LISTED = 6


@cache
def declarations() -> Mapping[str, type]:
    """Return every declaration that has settings, by the name of its table, including nested tables."""
    roots: dict[str, type] = {
        KERNEL: KernelSettings,
        "host": HostSettings,
        EXPERIMENTS: ExperimentsDocument,
    }
    plugins = load(discover().plugins)
    for kind, hook in HOOKS.items():
        for each in plugins.of(hook):
            offer: Any = each.offer
            if offer.settings is not None:
                roots[f"{kind}.{each.name}"] = offer.settings
    return {
        name: declaration
        for root, settings in roots.items()
        for name, declaration in _nested(root, settings)
        if describe_settings(declaration)
    }


def _nested(name: str, declaration: type) -> Iterator[tuple[str, type]]:
    yield name, declaration
    for each in describe_settings(declaration):
        if each.table is not None:
            inner = f"{name}.{each.name}.NAME" if each.is_named else f"{name}.{each.name}"
            yield from _nested(inner, each.table)


def pages() -> list[Path]:
    """Return the pages that may hold tables."""
    return sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md")])


def table(name: str) -> str:
    """Return the Markdown table of a declaration."""
    settings = describe_settings(declarations()[name])
    rows: list[tuple[str, ...]]
    if name == KERNEL:
        head: tuple[str, ...] = ("key", "variable", "default", "value", "meaning")
        rows = [(f"`{each.name}`", f"`JACKFIELD_{each.name.upper()}`", *_cells(each)) for each in settings]
    else:
        is_json = name.partition(".")[0] == EXPERIMENTS
        # The tables of the kernel are at the top of the settings file.
        in_file = name.removeprefix(f"{KERNEL}.")
        place = f"member of `{name.rpartition('.')[2]}`" if is_json else f"setting in `[{in_file}]`"
        head = (place, "default", "value", "meaning")
        rows = [(f"`{each.name}`", *_cells(each)) for each in settings]
    lines = [f"| {' | '.join(cells)} |\n" for cells in (head, *rows)]
    lines.insert(1, "|---" * len(head) + "|\n")
    return "".join(lines)


def _cells(setting: SettingDescription) -> tuple[str, str, str]:
    cells = (setting.default_text or _default(setting.default), setting.expected, setting.help)
    default, value, meaning = (cell.replace("|", "\\|") for cell in cells)
    return default, value, meaning


def _default(value: Any) -> str:
    if value is MISSING:
        return "required"
    if value is None:
        return "not set"
    if is_dataclass(value):
        return "its defaults"
    if isinstance(value, tuple | list):
        more = ", ..." if len(value) > MOST_LISTED else ""
        return ", ".join(f"`{each}`" for each in value[:MOST_LISTED]) + more or "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:.15g}`"
    return f"`{value}`" if str(value) and value != {} else "empty"


def generated(text: str) -> str:
    """Return a page with its tables generated from the declarations."""
    return MARKED.sub(lambda found: found["begin"] + table(found["name"]) + found["end"], text)


def main() -> None:
    """Write the tables of all pages."""
    for page in pages():
        before = page.read_text("utf-8")
        after = generated(before)
        if after != before:
            page.write_text(after, "utf-8")
            print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
