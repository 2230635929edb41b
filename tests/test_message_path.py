"""The traced paths through the code: their ceilings, and the page that shows them."""

from __future__ import annotations

import json

import pytest
from call_path.ceilings import CEILINGS, SPARE_CROSSINGS, SPARE_FUNCTIONS
from call_path.page import (
    PAGE,
    STAGES,
    TITLES,
    docstrings,
    explanation,
    functions_on_page,
    render,
    rows,
)
from call_path.scenarios import all_paths
from call_path.tracer import CallPath, Counts, Hop, Trace, tracing
from jackfield import ok

STALE = "docs/call.md is out of date: run `nox -s call_path`"


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CallPath]:
    """Return every path, traced once."""
    return all_paths(tmp_path_factory.mktemp("paths"))


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text("utf-8")


@pytest.mark.parametrize("name", CEILINGS)
def test_a_call_path_does_not_become_longer(paths: dict[str, CallPath], name: str) -> None:
    ceiling, counts = CEILINGS[name], paths[name].counts
    assert counts.files <= ceiling.files, paths[name].listing
    assert counts.functions <= ceiling.functions + SPARE_FUNCTIONS, paths[name].listing
    assert counts.crossings <= ceiling.crossings * SPARE_CROSSINGS, paths[name].listing


def test_a_text_message_passes_through_every_distribution_that_serves_it(paths: dict[str, CallPath]) -> None:
    """A trace without one of them measures nothing."""
    passed = {hop.distribution for hop in paths["text_message"].hops}
    assert {"host", "kernel", "policies", "store-sqlite", "transport-openai", "observability"} <= passed


@pytest.mark.parametrize("name", TITLES)
def test_the_page_shows_the_functions_that_run(paths: dict[str, CallPath], page: str, name: str) -> None:
    """Which functions every run reaches depends a little on the load of the machine, so a few may differ."""
    shown = functions_on_page(page, TITLES[name])
    path = paths[name]
    if name == "confirmation":
        shown |= functions_on_page(page, TITLES["text_message"])
    missing = {(hop.file, hop.function) for hop in path.hops} - shown
    gone = shown - {(hop.file, hop.function) for hop in path.seen}
    if name == "confirmation":
        # The page lists what it has in common with a text message only there.
        gone -= {(hop.file, hop.function) for hop in paths["text_message"].seen}
    assert len(missing) <= SPARE_FUNCTIONS, f"{STALE}; not shown: {sorted(missing)}"
    assert len(gone) <= SPARE_FUNCTIONS, f"{STALE}; no longer called: {sorted(gone)}"


def test_the_page_names_functions_that_exist_and_says_what_they_do_now(page: str) -> None:
    shown = list(rows(page))
    assert len(shown) > 200
    missing = [
        f"{row.file}: {name}" for row in shown for name in row.functions if name not in docstrings(row.file)
    ]
    assert missing == [], STALE
    changed = [
        f"{row.file}: {row.functions[0]}"
        for row in shown
        if len(row.functions) == 1
        and row.text not in (explanation(row.file, row.functions[0]), _of_file(row.file))
    ]
    assert changed == [], STALE


def test_every_function_on_the_path_of_a_message_says_what_it_does(page: str) -> None:
    message = page.partition(f"\n## {TITLES['build']}\n")[0]
    assert [f"{row.file}: {row.functions[0]}" for row in rows(message) if not row.text] == []


def test_the_page_is_rendered_from_paths() -> None:
    response = "kernel/src/jackfield/contract/tool.py"
    hops = [Hop("kernel", response, name) for name in STAGES]
    path = CallPath([*hops, Hop("kernel", response, "ok")], 0, frozenset(hops))
    rendered = render(dict.fromkeys(TITLES, path))
    for title in STAGES.values():
        assert f"\n### {title}\n" in rendered
    assert (response, "ok") in functions_on_page(rendered, TITLES["barge_in"])
    assert functions_on_page(rendered, TITLES["confirmation"]) == set()
    with pytest.raises(ValueError, match="no stage begins with"):
        render(dict.fromkeys(TITLES, CallPath([], 0, frozenset())))


def test_a_method_of_a_protocol_is_explained_by_the_protocol() -> None:
    store = "plugins/store-sqlite/src/jackfield_store_sqlite/store.py"
    assert (
        explanation(store, "SqliteStore.get")
        == explanation("kernel/src/jackfield/store.py", "Store.get")
        != ""
    )


def test_a_trace_counts_a_function_once_and_every_crossing() -> None:
    with tracing() as trace:
        answers = [ok({}) for _ in range(3)]
        json.dumps(len(answers))
    there = CallPath.common([trace])
    assert [hop.function for hop in there.hops] == ["ok"]
    assert there.distributions == ["kernel"]
    assert there.counts == Counts(files=1, functions=1, crossings=0)

    host, kernel = Hop("host", "a.py", "f"), Hop("kernel", "b.py", "g")
    back = CallPath.common([Trace([host, kernel, host]), Trace([host, kernel, kernel, host, kernel])])
    assert back.counts == Counts(files=2, functions=2, crossings=2)


def _of_file(file: str) -> str:
    """Return what the page says about a file of the build."""
    return explanation(file, "")
