"""The page about images is complete, and its examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import parse_settings
from jackfield_capability_types.images import ImageOrder, Images, ImagesView, StoredImage
from jackfield_images.prices import BUILT_IN
from jackfield_images.settings import ImageConsentSettings, ImagesSettings, ProviderConfig
from jackfield_testkit import ImagesContractTests
from jackfield_testkit.suite import suite_tests

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the pages are in the repository only", allow_module_level=True)
PAGE = (DOCS / "images.md").read_text("utf-8")


def tables(name: str) -> list[dict[str, Any]]:
    blocks = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    documents = [tomllib.loads(block) for block in blocks]
    kind, _, offer = name.partition(".")
    return [document[kind][offer] for document in documents if offer in document.get(kind, {})]


def test_every_example_in_the_docs_is_accepted() -> None:
    images, shared = (
        parse_settings(ImagesSettings, table, "[capabilities.images]")
        for table in tables("capabilities.images")
    )
    assert shared.url == "s3://our-pictures/jackfield"
    cost = ProviderConfig.of(images).prices.cost("gemini", "gemini-3.1-flash-image", ImageOrder("x"))
    assert cost == 0.07
    for table in tables("policies.image_consent"):
        parse_settings(ImageConsentSettings, table, "[policies.image_consent]")


def test_every_price_is_documented_with_its_date() -> None:
    assert "November 2026" in PAGE
    for provider, models in BUILT_IN.items():
        for model, prices in models.items():
            cells = [
                f"{price:g}"
                if isinstance(price, float)
                else f"{price['square']:g}, else {price['portrait']:g}"
                for price in prices.values()
            ]
            assert f"| {provider} | `{model}` | {' | '.join(cells)} |" in PAGE


def test_the_protocol_and_the_suite_are_documented() -> None:
    for protocol in (Images, ImagesView):
        methods = [name for name in vars(protocol) if not name.startswith("_")]
        section = PAGE.partition(f"### class {protocol.__name__}\n")[2].partition("\n### ")[0]
        assert [name for name in methods if f"{name}(" not in section] == []
    for kind in (ImageOrder, StoredImage):
        assert [name for name in kind.__dataclass_fields__ if f"`{name}`" not in PAGE] == []
    assert re.findall(r"^\| `(test_\w+)` \|", PAGE, re.MULTILINE) == list(suite_tests(ImagesContractTests))


def test_the_replacement_in_the_docs_passes_the_suite(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in blocks] == ["swatch_images.py", "test_swatch_images.py"]
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-W", "error"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(suite_tests(ImagesContractTests))} passed" in done.stdout
