"""tests/requirements.md matches the code: its tests exist, and it lists what the code enumerates."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import click
import jackfield_host.endpoints.events as streamed
import pytest
from jackfield import ToolContext, hookspecs
from jackfield.contract.manifest import tool_schema
from jackfield.contract.tool import ErrorType
from jackfield.plugins import Plugins, load
from jackfield.protocol.close_codes import CLOSE_REASONS
from jackfield.protocol.codec import message_type
from jackfield.protocol.messages import CLIENT_MESSAGES, HOST_MESSAGES, SESSION_EVENTS
from jackfield.session.session import State
from jackfield.settings import KEYS, SECTIONS, TABLES, Settings, describe_settings
from jackfield.transport.provider_errors import PROVIDER_ERRORS
from jackfield_builder.discovery import Selection, discover
from jackfield_builder.findings import CheckCode
from jackfield_builder.pipeline import build
from jackfield_cli import main
from jackfield_console import assets, markdown
from jackfield_host.app import ROUTES
from jackfield_host.settings import HostSettings, JwtSettings, KeySettings
from jackfield_observability.prometheus import METRICS
from name_lists import assert_lists
from requirements_map import REFERENCE, Row, faults, rows
from starlette.routing import Route

ROOT = Path(__file__).parents[1]
PENDING = "Not there yet"


def listed(section: str) -> list[str]:
    """Return the names that the map lists under a heading."""
    return [name for row in rows() if row.section == section for name in row.names]


# The map names tests that exist.


def test_every_named_test_exists_and_runs() -> None:
    stale = [fault for row in rows() for fault in faults(row)]
    assert stale == [], "python tests/requirements_map.py --fix replaces renamed tests"


def test_every_requirement_names_a_test() -> None:
    assert len(rows()) > 250
    untested = [row.cells[0] for row in rows() if not row.tests and row.chapter != PENDING]
    assert untested == [], "tests/requirements.md: name a test in the last cell"
    named = [name for row in rows() for name in re.findall(r"`([^`]*\.py[^`]*)`", row.cells[-1])]
    assert [name for name in named if "::" in name and not REFERENCE.fullmatch(f"`{name}`")] == []


def test_a_stale_entry_names_its_requirement_and_the_most_similar_test() -> None:
    here = "tests/test_coverage.py"
    stale = f"`{here}::test_every_requirement_names_its_test`"
    row = Row("1. A tool", "", ("what", "test"), ("Tools have names", stale))
    near = test_every_requirement_names_a_test.__name__
    assert faults(row) == [f"Tools have names: no test {stale}; did you mean `{here}::{near}`?"]


# The map lists everything that the code enumerates.


@cache
def plugins() -> Plugins:
    """Return what the distributions of this repository offer."""
    return load(discover(Selection(allow=("jackfield-*",))).plugins)


def offered(hook: str) -> set[str]:
    return {each.name for each in plugins().of(hook)}


def endpoints() -> set[str]:
    found = set()
    for route in (*ROUTES, *assets.create_routes(), *markdown.create_routes()):
        path = re.sub(r":\w+}", "}", route.path)
        methods = (route.methods or set()) - {"HEAD", "OPTIONS"} if isinstance(route, Route) else {"WS"}
        found |= {f"{method} {path}" for method in methods}
    return found


def over_sse() -> set[str]:
    made = set(re.findall(r"\b(\w+)\(", inspect.getsource(streamed)))
    transient = {kind for kind in HOST_MESSAGES if kind.__name__ in made}
    return set(map(message_type, {*SESSION_EVENTS, *transient}))


def declared(settings: type) -> set[str]:
    return {each.name for each in describe_settings(settings)}


ENUMERATED: dict[str, Callable[[], set[str]]] = {
    "The fields of schema.json": lambda: set(tool_schema()["properties"]),
    "Capabilities": lambda: offered("jackfield_capabilities"),
    "Checks by code": lambda: {code.id for code in CheckCode},
    "Error types": lambda: {kind.value for kind in ErrorType},
    "What a handler gets": lambda: {f"ctx.{name}" for name in vars(ToolContext) if name[0] != "_"},
    "Intents": lambda: offered("jackfield_intent_handlers"),
    "Hooks": lambda: {name for name in vars(hookspecs) if name.startswith("jackfield_")},
    "Stores": lambda: offered("jackfield_stores") | {"memory"},
    "By name": lambda: offered("jackfield_policies"),
    "Schema adapters": lambda: offered("jackfield_schema_adapters"),
    "Transports": lambda: offered("jackfield_transports"),
    "Troubles": lambda: set(PROVIDER_ERRORS),
    "States": lambda: {state.value for state in State},
    "Endpoints": endpoints,
    "What a client says": lambda: {*map(message_type, CLIENT_MESSAGES), "audio_frame"},
    "What the host says": lambda: {*map(message_type, HOST_MESSAGES), "audio_frame"},
    "Events over SSE": over_sse,
    "Why the host closes a WebSocket": lambda: {closing.name for closing in CLOSE_REASONS},
    "Commands": lambda: set(main.list_commands(click.Context(main))),
    "Observers": lambda: offered("jackfield_observers"),
    "Metrics": lambda: {metric.name for metric in METRICS},
    "Keys and tables": lambda: {*KEYS, *TABLES, *SECTIONS},
    "The host": lambda: declared(HostSettings),
    "A key of the host": lambda: declared(KeySettings),
    "Tokens of others": lambda: declared(JwtSettings),
}


@pytest.mark.parametrize("section", ENUMERATED)
def test_the_lists_match_what_the_code_enumerates(section: str) -> None:
    assert_lists(f"tests/requirements.md, section {section!r}", listed(section), ENUMERATED[section]())
    assert len(listed(section)) == len({*listed(section)}), f"section {section!r} lists a name twice"


def test_every_field_of_a_snapshot_is_listed(site: Any) -> None:
    site.tool("fab_words")
    built = build(Settings(allow=("fab-*",)))
    assert built.snapshot, built.findings
    document = built.snapshot.wire
    (tool,) = document["tools"]
    section = "The fields of the snapshot"
    assert_lists(f"tests/requirements.md, section {section!r}", listed(section), {*document, *tool})


def test_every_rule_and_every_fault_has_its_number() -> None:
    # Fault 20 is about foreign tool servers.
    faults = {*range(1, 20)}
    for section, chapter, expected in (
        ("By rule", "4. Policies", {*range(1, 10)}),
        ("", "10. Faults", faults),
    ):
        said = [row.cells[0] for row in rows() if (row.section, row.chapter) == (section, chapter)]
        numbers = {int(found[1]) for each in said if (found := re.match(r"(\d+)\. ", each))}
        assert numbers == expected


def test_every_setting_of_a_plugin_is_listed() -> None:
    there = {}
    for each in plugins().offered:
        kind = each.hook.removeprefix("jackfield_")
        if kind in TABLES:
            offer: Any = each.offer
            there[f"{kind}.{each.name}"] = declared(offer.settings)
    page = {row.names[0]: re.findall(r"`(\w+)`", row.cells[1]) for row in rows() if row.section == "Plugins"}
    assert_lists(
        "tests/requirements.md, section 'Plugins'",
        (f"{name}: {setting}" for name, settings in page.items() for setting in settings),
        (f"{name}: {setting}" for name, settings in there.items() for setting in settings),
    )


# The tools.


def manifests() -> dict[str, dict[str, Any]]:
    found = [
        json.loads(path.read_text("utf-8")) for path in ROOT.glob("tool-packages/[!_]*/src/*/schema.json")
    ]
    return {each["toolId"]: each for each in found}


def as_listed(manifest: dict[str, Any]) -> tuple[str, ...]:
    """Return a tool's row, without its name and its tests."""
    confirms = {True: "yes", False: "no"}.get(manifest["requiresConfirmation"], "policy")
    modes = ["yes" if mode in manifest["allowedModes"] else "no" for mode in ("voice", "text")]
    budget = str(manifest["latencyBudgetMs"])
    return (manifest["category"], manifest["sideEffects"], *modes, budget, confirms)


def test_every_tool_is_listed_with_the_values_of_its_manifest() -> None:
    section = "The tools of this repository"
    page = {row.names[0]: row.cells[1:-1] for row in rows() if row.section == section}
    assert_lists(
        f"tests/requirements.md, section {section!r}",
        (" | ".join((name, *cells)) for name, cells in page.items()),
        (" | ".join((name, *as_listed(manifest))) for name, manifest in manifests().items()),
    )


def test_existing_tools_are_not_listed_as_missing() -> None:
    assert sorted(set(listed("Tools that are missing")) & set(manifests())) == []
