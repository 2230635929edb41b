"""The documentation site: every page is listed, no link is broken, and it needs no network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def build(source: Path, to: Path, builder: str = "html") -> subprocess.CompletedProcess[str]:
    """Build the site as `nox -s docs` does."""
    options = ["-W", "--keep-going", "-n", "-q", "-c", str(DOCS), "-b", builder, "-d", str(to / "doctrees")]
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(source), str(to / "site")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


class Page(HTMLParser):
    """Collects what a browser would request to show a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link":
            self.asked.append(given.get("href") or "")
        elif tag != "a" and given.get("src"):
            self.asked.append(given["src"] or "")


def test_the_site_builds_all_pages_in_order_without_the_network(tmp_path: Path) -> None:
    built = build(ROOT, tmp_path)

    # An unlisted page, and a link or an anchor without a target: each is a line here.
    assert built.stderr == ""
    assert built.returncode == 0
    pages = {page.stem: page.read_text("utf-8") for page in (tmp_path / "site").rglob("*.html")}
    assert {page.stem for page in DOCS.glob("*.md")} <= set(pages)
    assert {"architecture", "CHANGELOG", "CONTRIBUTING"} <= set(pages)
    asked = {address for text in pages.values() for address in Page(text).asked}
    assert [address for address in asked if "//" in address] == []
    for sheet in (tmp_path / "site" / "_static").rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", sheet.read_text("utf-8")), sheet
    assert "confirm" in (tmp_path / "site" / "searchindex.js").read_text("utf-8")


def test_broken_links_and_unreachable_pages_fail_the_build(tmp_path: Path) -> None:
    pages = tmp_path / "docs"
    pages.mkdir()
    links = "[a](nowhere.md) [b](other.md#nothing) [c](#neither)"
    (pages / "index.md").write_text(f"# Home\n\n{links}\n\n```{{toctree}}\nother\n```\n")
    (pages / "other.md").write_text("# Other\n")
    (pages / "lonely.md").write_text("# Lonely\n")

    built = build(tmp_path, tmp_path, "dummy")

    assert built.returncode != 0
    complaints = built.stderr.splitlines()
    assert len([line for line in complaints if "WARNING" in line]) == 4
    for culprit in ("nowhere", "nothing", "neither", "lonely.md"):
        assert any(culprit in line for line in complaints)


PATHS = re.compile(r"`((?:kernel|plugins|tool-packages|deploy|docs|prompts)/[\w./-]+)`")


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), ROOT / "README.md"], ids=lambda page: page.name)
def test_every_file_named_by_a_page_exists(page: Path) -> None:
    named = set(PATHS.findall(page.read_text("utf-8")))
    assert {path for path in named if not (ROOT / path).exists()} == set()


def blocks(page: str) -> dict[str, str]:
    """Return the blocks of a page that name their file in the first line."""
    text = (DOCS / page).read_text("utf-8")
    return dict(re.findall(r"^```\w+\n# (\S+\.\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def test_the_plugin_example_passes_its_test_and_rejects_calls(site: Any, tmp_path: Path) -> None:
    shown = blocks("plugin.md")
    flowers = site.tool("buy_flowers")
    _, _, files = (
        (DOCS / "plugin.md").read_text("utf-8").partition("`schema.json`, `guide.md` and `handler.py`:")
    )
    parts = re.findall(r"^(`{3,})\w+\n(.*?)^\1$", files, re.MULTILINE | re.DOTALL)
    for name, (_, text) in zip(("schema.json", "guide.md", "handler.py"), parts, strict=False):
        (flowers / name).write_text(text)
    project = tomllib.loads(shown["pyproject.toml"])["project"]
    ((name, package),) = project["entry-points"]["jackfield.plugins"].items()
    site.plugin(package.replace("_", "-"), shown[f"src/{package}/__init__.py"])
    (tmp_path / "test_spending.py").write_text(shown["tests/test_spending.py"])
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_spending.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "2 passed" in tested.stdout

    def jackfield(*arguments: str) -> dict[str, Any]:
        command = [str(Path(sys.executable).with_name("jackfield")), *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    (tmp_path / "jackfield.toml").write_text(shown["jackfield.toml"])
    allowed = ("fab-*", "jackfield-policies", "jackfield-store-sqlite", package.replace("_", "-"))
    jackfield("build", *(argument for each in allowed for argument in ("--allow", each)))
    calls = [jackfield("call", "buy_flowers", '{"price": 60}', "--user", "ada") for _ in range(2)]
    assert [each["decisions"][name] for each in calls] == ["pass", "refused: 60 of 40 left"]
