"""The offers of the plugin, and their documentation."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import jackfield_observability
import orjson
import pytest
from jackfield.distributions import PLUGINS, Distribution, EntryPoint
from jackfield.offers import ObserverOffer, Services
from jackfield.plugins import load
from jackfield.settings import SettingsError, parse_offer
from jackfield.store import MemoryStore
from jackfield_observability import traces
from jackfield_observability.audit import dropped_line
from jackfield_observability.metrics import Metrics
from jackfield_observability.prometheus import METRICS
from jackfield_observability.redaction import SENSITIVE_KEYWORDS
from jackfield_observability.settings import AuditSettings, MetricsSettings

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the pages are in the repository only", allow_module_level=True)
PAGE = (DOCS / "observability.md").read_text("utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """Return the table under a heading: the code in the first column, and the other columns."""
    _, _, rest = PAGE.partition(f"# {heading}\n")
    section = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line
    ]
    return {row[0].strip("`"): row[1:] for row in cells if row[0].startswith("`")}


def offers() -> dict[str, ObserverOffer]:
    entry = EntryPoint(PLUGINS, "observability", "jackfield_observability", Distribution("x", "1"))
    plugins = load([entry])
    assert plugins.faults == ()
    return {each.name: each.offer for each in plugins.offered if isinstance(each.offer, ObserverOffer)}


def test_every_field_of_a_line_is_documented_and_no_other(audited: Callable[..., Any]) -> None:
    talk = audited()
    talk.call()
    (line,) = talk.lines()
    # Fields added only by a policy, the handler or violated `returns`.
    assert set(rows("The lines")) == {*line, "meta", "notes", "returnsViolations"}
    assert set(rows("Missing lines")) == set(orjson.loads(dropped_line(1, "north")))


def test_every_metric_is_documented_with_its_type_and_labels() -> None:
    labels = {
        "_errors": "tool, variant, experiment, type",
        "_decisions": "policy, decision",
        "_unbacked_claims": "tool, state",
        "_by_tool": "tool, variant, experiment",
        "_shadows": "experiment, tool, variant, outcome",
        "_experiments_version": "",
        "_aborts": "experiment, variant",
        "_by_mode": "mode",
        "_alone": "",
        "_host": "host",
    }
    documented = rows("The metrics")
    assert set(documented) == {metric.name for metric in METRICS}
    for metric in METRICS:
        made_by = metric.read.__qualname__.split(".")[0]
        kind, named, *_ = documented[metric.name]
        assert (kind, named.replace("`", "")) == (metric.kind, labels[made_by])


@pytest.mark.parametrize(
    ("observer", "options"),
    [("audit", AuditSettings), ("metrics", MetricsSettings)],
)
def test_every_setting_is_documented_with_its_default(observer: str, options: Any) -> None:
    documented = rows(f"{observer.capitalize()} settings")
    assert set(documented) == {field.name for field in fields(options)}
    for field in fields(options):
        default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
        assert documented[field.name][0].strip("`") == default


def test_every_name_of_a_span_is_documented() -> None:
    names = [
        value
        for name, value in inspect.getmembers(traces)
        if name.isupper() and isinstance(value, str) and re.match(r"gen_ai\.|jackfield\.|error\.", value)
    ]
    assert len(names) == 11
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_example_runs() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(example, "docs/observability.md", "exec"), {})


def test_the_sensitive_keywords_are_documented() -> None:
    assert [mark for mark in SENSITIVE_KEYWORDS if f'`"{mark}": true`' not in PAGE] == []


def test_three_observers_are_offered_and_made_from_settings(tmp_path: Path) -> None:
    made = offers()
    assert list(made) == ["audit", "metrics", "traces"]
    services = Services(MemoryStore())
    settings: dict[str, dict[str, Any]] = {
        "audit": {"path": str(tmp_path / "a.jsonl")},
        "metrics": {"context_limit_tokens": 9},
        "traces": {},
    }
    observers = [
        offer.create(parse_offer("observers", offer, settings[name]), services)
        for name, offer in made.items()
    ]
    for observer in observers:
        asyncio.run(observer.close())

    assert [type(observer).__name__ for observer in observers] == ["Audit", "Metrics", "Traces"]
    assert isinstance(observers[1], Metrics)
    assert observers[1].settings.context_limit_tokens == 9


@pytest.mark.parametrize("missing", ["no sdk", "no opentelemetry"])
def test_without_the_sdk_traces_are_not_offered(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def find_spec(name: str) -> None:
        if missing == "no opentelemetry":
            raise ModuleNotFoundError(name)

    monkeypatch.setattr(jackfield_observability, "find_spec", find_spec)
    assert list(offers()) == ["audit", "metrics"]


@pytest.mark.parametrize(
    ("observer", "settings", "fault"),
    [
        ("audit", {"pth": "x"}, "pth: unknown setting; did you mean 'path'?"),
        ("metrics", {"zzz": 1}, "zzz: unknown setting; known settings: context_limit_tokens, "
         "response_limit_characters"),
        ("audit", {"path": 5}, "path: expected a path, got 5"),
        ("audit", {"path": ""}, "path: expected a path, got ''"),
        ("audit", {"max_bytes": True}, "max_bytes: expected an integer of at least 0, got true"),
        ("audit", {"max_bytes": -1}, "max_bytes: expected an integer of at least 0, got -1"),
        ("audit", {"backups": 0}, "backups: expected at least 1 if max_bytes limits the file, got 0"),
        ("audit", {"arguments": 1}, "arguments: expected true or false, got 1"),
        ("traces", {"path": "x"}, "path: unknown setting; this table has no settings"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_reported_with_its_place(
    observer: str, settings: dict[str, Any], fault: str
) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(f'[observers.{observer}] {fault}')}$"):
        parse_offer("observers", offers()[observer], settings)
