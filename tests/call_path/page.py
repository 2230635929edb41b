"""The page `docs/call.md`, written from the traced paths: `nox -s call_path`.

What a function does is the first sentence of its docstring. So the page shows a function as the code
describes it, and a function without a docstring has no explanation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from call_path.ceilings import CEILINGS
from call_path.tracer import ROOT, CallPath, Hop

PAGE = ROOT / "docs" / "call.md"

INTRODUCTION = """\
# The path of a call

This page shows which functions run when a client sends a message, speaks, interrupts the model or confirms a
call, and when `jackfield build` writes a registry. `nox -s call_path` traces a real host and writes the page:
a WebSocket client, the host, the session, the OpenAI transport with a scripted provider, the standard
policies and observers, and the SQLite store. Read it with the code at hand: each link leads to the file, and
[Architecture](../kernel/docs/architecture.md) explains why the code is divided this way.

A function counts once, however often it runs. A crossing is a step from the code of one distribution to that
of another; a coroutine that continues after a wait counts again. Threads are not traced, so the store's
writer and the observers do not appear. The ceilings are in `tests/call_path/ceilings.py`, and a test fails
when a path exceeds its ceiling or this page is out of date. The numbers vary slightly with the load.

Start at *The host receives the message* if you want to read the code from the socket to the answer. If you
change a function on this page, run `nox -s call_path` and look at the difference: it shows what your change
adds to every message.
"""

TITLES = {
    "text_message": "A text message with one tool call",
    "confirmation": "A call that the user confirms",
    "barge_in": "A barge-in",
    "voice_frame": "A voice frame",
    "build": "A registry build",
}

DESCRIPTIONS = {
    "text_message": "A client sends a text, the model calls a tool that only reads, and then answers.",
    "confirmation": (
        "The model calls a tool that needs confirmation. The client gets a confirmation card and approves "
        "the call, the tool runs, and the model learns the outcome. The table lists the functions that a "
        "text message does not reach."
    ),
    "barge_in": (
        "The user begins to speak while the client still plays the model's answer. The host drops the rest "
        "of the audio, cuts the answer to the part that was played, and tells the provider."
    ),
    "voice_frame": "The client sends 20 ms of speech, and the host passes it to the provider.",
    "build": (
        "`jackfield build` finds the tools and plugins, checks them and writes `tool_registry.json`. The "
        "table has one row per file."
    ),
}

STAGES = {
    "BoundedWebSocketProtocol.data_received": "The host receives the message",
    "LiveSession.send_text": "The session begins a turn",
    "ChatConnection.send_text": "The transport asks the model",
    "ToolRunner.start": "The session saves and starts the call",
    "Orchestrator.handle": "The kernel runs the call through its policies",
    "ToolRunner._publish": "The result goes to the clients and to the model",
    "ModelLoop._on_text": "The answer goes to the clients",
}
"""The stages of a text message, by the function that each begins with."""


class Row(NamedTuple):
    """Functions of one file, and what they do."""

    file: str
    functions: tuple[str, ...]
    text: str


def render(paths: Mapping[str, CallPath]) -> str:
    """Return the page for these paths."""
    parts = [INTRODUCTION, _totals(paths)]
    text = paths["text_message"]
    for name, path in ((name, paths[name]) for name in TITLES):
        parts.append(f"## {TITLES[name]}\n\n{DESCRIPTIONS[name]}\n")
        parts.append(f"Distributions, in order of first appearance: {_listed(path.distributions)}.\n")
        if name == "text_message":
            parts += [f"### {title}\n\n{_table(_each(hops))}" for title, hops in _stages(path.hops)]
        elif name == "confirmation":
            parts.append(_table(_each([hop for hop in path.hops if hop not in text.hops])))
        elif name == "build":
            parts.append(_table(_by_file(path.hops)))
        else:
            parts.append(_table(_each(path.hops)))
    return "\n".join(parts)


def rows(page: str) -> Iterator[Row]:
    """Yield the rows of the page's tables of functions."""
    file = ""
    found = re.finditer(r"^\| (?:\[`[^`]+`\]\(\.\./([^)]+)\))? ?\| (`.+?`) \| (.*)\|$", page, re.MULTILINE)
    for path, functions, text in (match.groups() for match in found):
        file = path or file
        yield Row(file, tuple(re.findall(r"`([^`]+)`", functions)), text.strip())


def functions_on_page(page: str, title: str) -> set[tuple[str, str]]:
    """Return the file and name of each function below a heading of the page."""
    section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return {(row.file, function) for row in rows(section) for function in row.functions}


def explanation(file: str, function: str) -> str:
    """Return the first sentence of a function's docstring, or of the module's if the name is empty.

    A method that refers to a protocol is explained by the protocol.
    """
    text = docstrings(file).get(function, "")
    if function.endswith(".__init__") and not text:
        text = docstrings(file).get(function.removesuffix(".__init__"), "")
    if reference := re.fullmatch(r"See `(\w+\.\w+)`.*", text, re.DOTALL):
        text = next(filter(None, (docstrings(each).get(reference[1]) for each in _kernel())), text)
    return _first_sentence(text)


@cache
def docstrings(file: str) -> Mapping[str, str]:
    """Return the docstrings of a file's classes and functions; `''` has that of the module."""
    found: dict[str, str] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = prefix + child.name
                found[name] = ast.get_docstring(child) or ""
                visit(child, f"{name}." if isinstance(child, ast.ClassDef) else f"{name}.<locals>.")
            else:
                visit(child, prefix)

    tree = ast.parse((ROOT / file).read_text("utf-8"))
    found[""] = ast.get_docstring(tree) or ""
    visit(tree, "")
    return found


@cache
def _kernel() -> tuple[str, ...]:
    files = sorted((ROOT / "kernel" / "src").rglob("*.py"))
    return tuple(file.relative_to(ROOT).as_posix() for file in files)


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", paragraph, maxsplit=1)[0].replace("|", "\\|")


def _stages(hops: Sequence[Hop]) -> Iterator[tuple[str, list[Hop]]]:
    """Split a path into its stages, each from its first function to the next stage."""
    names = [hop.function for hop in hops]
    missing = [function for function in STAGES if function not in names]
    if missing:
        raise ValueError(
            f"no stage begins with {', '.join(missing)}: correct STAGES in {Path(__file__).name}"
        )
    begins = sorted((names.index(function), title) for function, title in STAGES.items())
    for (first, title), (end, _) in zip(begins, [*begins[1:], (len(hops), "")], strict=True):
        yield title, list(hops[first:end])


def _totals(paths: Mapping[str, CallPath]) -> str:
    lines = [
        "| path | files | functions | distributions | crossings | ceiling: files, functions, crossings |",
        "|---|---|---|---|---|---|",
    ]
    for name, title in TITLES.items():
        path, ceiling = paths[name], CEILINGS[name]
        files, functions, crossings = path.counts
        anchor = title.lower().replace(" ", "-")
        allowed = ", ".join(map(str, ceiling))
        lines.append(
            f"| [{title}](#{anchor}) | {files} | {functions} | {len(path.distributions)} | {crossings} | "
            f"{allowed} |"
        )
    return "\n".join([*lines, ""])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _each(hops: Sequence[Hop]) -> list[Row]:
    return [Row(hop.file, (hop.function,), explanation(hop.file, hop.function)) for hop in hops]


def _by_file(hops: Sequence[Hop]) -> list[Row]:
    by_file: dict[str, list[str]] = {}
    for hop in hops:
        by_file.setdefault(hop.file, []).append(hop.function)
    return [Row(file, tuple(functions), explanation(file, "")) for file, functions in by_file.items()]


def _table(table: Sequence[Row]) -> str:
    lines = ["| file | function | what it does |", "|---|---|---|"]
    for file, group in groupby(table, key=lambda row: row.file):
        parts = Path(file).parts
        source = parts.index("src")
        label = f"{parts[source - 1]}: {'/'.join(parts[source + 2 :])}"
        link = f"[`{label}`](../{file})"
        for row in group:
            lines.append(f"| {link} | {_listed(row.functions)} | {row.text} |")
            link = ""
    return "\n".join([*lines, ""])
