"""The page about the web is complete, and its examples run."""

from __future__ import annotations

import asyncio
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jackfield.distributions import Distribution, EntryPoint
from jackfield.offers import Services
from jackfield.plugins import load
from jackfield.settings import parse_settings
from jackfield.store import MemoryStore
from jackfield_capability_types.web import RECENCIES, Link, Page, Web, WebResult, WebSearch
from jackfield_testkit import ToolTestContext
from jackfield_tool_web_search.handler import execute
from jackfield_web import client
from jackfield_web.reader import formats, pool
from jackfield_web.reader.formats import LONGEST
from jackfield_web.settings import WebSearchSettings, WebSettings

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the pages are in the repository only", allow_module_level=True)
PAGE = (DOCS / "web.md").read_text("utf-8")


def section(heading: str) -> str:
    return PAGE.partition(f"{heading}\n")[2].partition("\n#")[0]


def test_settings_in_the_docs_are_accepted() -> None:
    (block,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    tables = tomllib.loads(block)["capabilities"]
    hosts = parse_settings(WebSettings, tables["web"], "[capabilities.web]").hosts
    assert hosts.permits("docs.example.com", 443)
    assert hosts.names("wiki.example.net", 8080)
    search = parse_settings(WebSearchSettings, tables["web_search"], "[capabilities.web_search]")
    assert search.unavailable() is None


def test_documented_limits_match_the_code() -> None:
    assert f"At most {client.MOST_REDIRECTS} are followed," in PAGE
    assert f"more than {client.LONGEST_ADDRESS} characters" in PAGE
    for row in (
        f"| time to connect | {client._CONNECT_SECONDS:g} s",
        f"| time to parse a page | {pool._SECONDS:g} s",
        f"| length of a page's text | {LONGEST:,} characters |",
        f"| pages in a PDF | {formats.MOST_PAGES};",
        f"| links on a page | {formats.MOST_LINKS},",
        f"| concurrent pages | {client._MOST_AT_ONCE} connections, {pool._MOST_READERS} readers |",
    ):
        assert row in PAGE


def test_the_protocols_are_documented() -> None:
    for protocol in (Web, WebSearch):
        methods = [name for name in vars(protocol) if not name.startswith("_")]
        described = section(f"### class {protocol.__name__}")
        assert [name for name in methods if f"{name}(" not in described] == []
    fields = [*Page.__dataclass_fields__, *WebResult.__dataclass_fields__, *Link._fields, *RECENCIES]
    assert [name for name in fields if f"`{name}`" not in PAGE] == []


def test_the_replacement_in_the_docs_serves_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"^```python\n# bookmarks\.py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "bookmarks.py").write_text(block)
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins = load(
        [EntryPoint("jackfield.plugins", "bookmarks", "bookmarks", Distribution("bookmarks", "1.0.0"))]
    )
    assert plugins.faults == ()
    offer: Any = plugins.offered[0].offer
    assert "no bookmarks" in offer.unavailable({})
    settings = {"links": {"Harbour museum": "https://museum.example.org/"}}
    assert offer.unavailable(settings) is None
    context = ToolTestContext("text", web_search=offer.create(settings, Services(MemoryStore())))
    response = asyncio.run(execute({"query": "museum hours", "count": 5}, context))
    assert [each["url"] for each in response.data["results"]] == ["https://museum.example.org/"]
