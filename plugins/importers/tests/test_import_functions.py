"""FastMCP servers and LangChain tools become families whose handlers call the originals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from importer_commands import install, jackfield

SERVER = '''
"""A server of a shop."""

from dataclasses import dataclass
from typing import Annotated

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from pydantic import Field

print("a server may print at import")

mcp = FastMCP("Corner shop")
STOCK = {"apple": 3, "pear": 0}


@dataclass
class Line:
    item: str
    count: int


@mcp.tool(annotations={"readOnlyHint": True})
def stock_of(item: Annotated[str, Field(description="What is sold.", max_length=40)]) -> int:
    """Say how many of an item are left."""
    if item not in STOCK:
        raise ToolError(f"There is no {item}.")
    return STOCK[item]


@mcp.tool
async def order(lines: list[Line], notes: dict[str, str] | None = None) -> dict:
    """Order goods.

    Every line names an item and a count.
    """
    return {"pieces": sum(line.count for line in lines), "notes": notes or {}}


@mcp.tool
def get_hours() -> str:
    """Tell when the shop is open."""
    return "nine to five"
'''

TOOLS = '''
"""LangChain tools."""

from typing import Annotated

from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException, tool


@tool
def search_books(query: str, limit: int = 5, who: Annotated[str, InjectedToolArg] = "nobody") -> list[str]:
    """Search for books by words of the title."""
    return [f"{query} {number} for {who}" for number in range(1, limit + 1)]


def _lend(title: str) -> str:
    """Lend a book."""
    if title == "lost":
        raise ToolException("That book is lost.")
    return f"{title} is yours"


tools = [search_books, StructuredTool.from_function(_lend, name="lendBook")]
'''


def imported(kind: str, source: object, folder: Path, patch: pytest.MonkeyPatch, *options: str) -> Path:
    patch.chdir(folder)
    done = jackfield("import", kind, source, "--out", "out", *options)
    assert done.exit_code == 0, done.output
    assert set(re.findall(r"JF\d+", done.output)) <= {"JF406"}
    return folder / "out"


def frozen(project: Path, distribution: str, patch: pytest.MonkeyPatch) -> None:
    site = project.parent / "site"
    install(project, site)
    patch.syspath_prepend(str(site))
    patch.setenv("JACKFIELD_ALLOW", f"{distribution},jackfield-policies")
    built = jackfield("build")
    assert built.exit_code == 0, built.output


def call(tool: str, arguments: object) -> tuple[int, str]:
    done = jackfield("call", tool, json.dumps(arguments), "--yes", "--json")
    return done.exit_code, done.stdout


def test_a_fastmcp_server_becomes_a_family_that_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corner_shop.py").write_text(SERVER, "utf-8")
    project = imported("fastmcp", "corner_shop.py", tmp_path, monkeypatch)
    schema = json.loads((project / "src/corner_shop_tools/schema.json").read_text("utf-8"))
    assert schema["tools"]["stock_of"]["category"] == "retrieval"
    assert schema["tools"]["get_hours"]["category"] == "retrieval"
    assert schema["tools"]["order"]["requiresConfirmation"] is True
    assert schema["tools"]["stock_of"]["parameters"]["properties"]["item"]["maxLength"] == 40
    frozen(project, "corner-shop-tools", monkeypatch)
    code, output = call("stock_of", {"item": "apple"})
    assert code == 0, output
    assert '"result":3' in output.replace(" ", "")
    code, output = call("stock_of", {"item": "plum"})
    assert code == 1
    assert "There is no plum." in output
    arguments = {
        "lines": [{"item": "apple", "count": 2}, {"item": "pear", "count": 1}],
        "notes": [{"name": "door", "value": "green"}],
    }
    code, output = call("order", arguments)
    assert code == 0, output
    assert '"pieces":3' in output.replace(" ", "")
    assert '"notes":{"door":"green"}' in output.replace(" ", "").replace("\n", "")
    assert "nine to five" in call("get_hours", {})[1]


def test_langchain_tools_become_a_family_that_calls_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "library.py").write_text(TOOLS, "utf-8")
    project = imported("langchain", "library.py", tmp_path, monkeypatch, "--name", "library")
    schema = json.loads((project / "src/library_tools/schema.json").read_text("utf-8"))
    assert set(schema["tools"]) == {"search_books", "lend_book"}
    assert set(schema["tools"]["search_books"]["parameters"]["properties"]) == {"query", "limit"}
    assert schema["tools"]["search_books"]["category"] == "retrieval"
    assert schema["tools"]["lend_book"]["sideEffects"] == "writes"
    frozen(project, "library-tools", monkeypatch)
    code, output = call("search_books", {"query": "tides", "limit": 2})
    assert code == 0, output
    assert "tides 2 for nobody" in output
    assert "tides is yours" in call("lend_book", {"title": "tides"})[1]
    code, output = call("lend_book", {"title": "lost"})
    assert code == 1
    assert "That book is lost." in output


def test_an_installed_module_is_called_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = tmp_path / "modules"
    (modules / "acme").mkdir(parents=True)
    (modules / "acme" / "__init__.py").write_text("")
    (modules / "acme" / "tools.py").write_text(TOOLS, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(modules))
    project = imported("langchain", "acme.tools:search_books", tmp_path, monkeypatch)
    files = {path.name for path in (project / "src/tools_tools").iterdir()}
    assert "original.py" not in files
    assert "_ORIGINAL = 'acme.tools'" in (project / "src/tools_tools/handler.py").read_text("utf-8")
    assert "add the distribution that provides `acme.tools`" in (project / "REVIEW.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [
        ("absent.py", None, "absent.py cannot be read: No such file or directory."),
        ("no_such_module", None, "No module named 'no_such_module'"),
        ("not a module", None, "is neither a Python file nor the name of a module"),
        ("empty.py", "x = 1\n", "has no FastMCP server at its top level"),
        ("broken.py", "def (\n", "importing it failed with SyntaxError"),
        ("exits.py", "import sys\nsys.exit(3)\n", "importing it failed with SystemExit: 3"),
        ("dies.py", "import os\nos._exit(3)\n", "ended the process: exit status 3"),
        ("sibling.py", "import other_file_of_mine\n", "No module named 'other_file_of_mine'"),
        (
            "two.py",
            "from fastmcp import FastMCP\na = FastMCP('a')\nb = FastMCP('b')\n",
            "the module has several servers; add :a or :b",
        ),
        ("none.py", "from fastmcp import FastMCP\na = FastMCP('a')\n", "no tool of none.py can be imported"),
    ],
)
def test_a_module_that_cannot_be_imported_gives_one_sentence(
    source: str, text: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path(source).write_text(text, "utf-8")
    done = jackfield("import", "fastmcp", source, "--out", "out")
    assert done.exit_code == 1
    assert message in done.output
    assert "Traceback" not in done.output
    assert not Path("out").exists()


def test_an_environment_without_the_framework_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("server.py").write_text("x = 1\n", "utf-8")
    Path("python").write_text('#!/bin/sh\nexec python3 -S -I "$2" "$3" "$4" "$5" "$6"\n', "utf-8")
    Path("python").chmod(0o755)
    done = jackfield("import", "fastmcp", "server.py", "--python", str(tmp_path / "python"), "--out", "out")
    assert done.exit_code == 1
    assert "fastmcp is not installed in this environment" in done.output
    missing = jackfield("import", "fastmcp", "server.py", "--python", "/no/python", "--out", "out")
    assert "/no/python cannot be run: No such file or directory." in missing.output
