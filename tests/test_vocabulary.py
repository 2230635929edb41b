"""The glossary describes the code, and the code uses one name for one thing."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
SOURCES = sorted(
    path
    for top in ("kernel", "plugins", "tool-packages")
    for path in (ROOT / top).glob("**/src/**/*.py")
    if "_template" not in path.parts
)
TERMS = re.findall(r"^\| (?!term |---)([^|]+) \| [^|]+ \| ?([^|]*) ?\|$", GLOSSARY, re.MULTILINE)
SHARED = frozenset(re.findall(r"`([A-Z]\w+)`", GLOSSARY.partition("## Names used twice")[2]))
NOUNS_IN_ING = frozenset({"encoding", "grounding", "lowering", "ranking"})
"""Module names that end in -ing and are nouns of the field."""


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    inside = parts[parts.index("src") + 1 :]
    return ".".join(inside[:-1] if inside[-1] == "__init__" else inside)


def public_classes() -> Iterator[tuple[str, str]]:
    for path in SOURCES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, module_of(path)


def test_the_glossary_defines_the_words_that_matter() -> None:
    terms = [term for term, _ in TERMS]
    assert len(terms) >= 60
    assert len(set(terms)) == len(terms)


@pytest.mark.parametrize(
    "place", sorted({place for _, places in TERMS for place in re.findall(r"`([\w.]+)`", places)})
)
def test_every_place_in_the_glossary_exists(place: str) -> None:
    module, _, name = place.rpartition(".")
    if not hasattr(importlib.import_module(module), name):
        importlib.import_module(place)


def test_no_two_public_classes_share_a_name() -> None:
    places = defaultdict(list)
    for name, module in public_classes():
        places[name].append(module)
    shared = {name: modules for name, modules in places.items() if len(modules) > 1 and name not in SHARED}
    assert shared == {}


def test_names_used_twice_are_events_and_the_messages_that_carry_them() -> None:
    places = defaultdict(set)
    for name, module in public_classes():
        places[name].add(module)
    for name in SHARED:
        assert places[name] == {"jackfield.transport.events", "jackfield.protocol.messages"}, name


def test_modules_are_named_for_things() -> None:
    activities = [
        module_of(path) for path in SOURCES if path.stem.endswith("ing") and path.stem not in NOUNS_IN_ING
    ]
    assert activities == []
