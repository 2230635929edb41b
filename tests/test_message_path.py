"""The number of files, functions and switches between distributions on paths through the code.

The ceilings are the last measured values, so a change that makes a path longer has to give a reason. They
only fall.
"""

from __future__ import annotations

import json

import pytest
from call_path.scenarios import all_paths
from call_path.tracer import CallPath, Counts, Hop, Trace, tracing
from jackfield import ok

CEILINGS = {
    "build": Counts(49, 266, 572),
    "text_message": Counts(56, 197, 255),
    "confirmation": Counts(61, 258, 500),
    "barge_in": Counts(28, 115, 70),
    "voice_frame": Counts(7, 10, 4),
}

SPARE_FUNCTIONS, SPARE_SWITCHES = 3, 1.1
"""The counts vary slightly with the load: tasks are scheduled in another order, a lease is checked again."""


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CallPath]:
    """Trace every path once."""
    return all_paths(tmp_path_factory.mktemp("paths"))


@pytest.mark.parametrize("name", CEILINGS)
def test_a_call_path_does_not_become_longer(paths: dict[str, CallPath], name: str) -> None:
    ceiling, counts = CEILINGS[name], paths[name].counts
    assert counts.files <= ceiling.files, paths[name].listing
    assert counts.functions <= ceiling.functions + SPARE_FUNCTIONS, paths[name].listing
    assert counts.switches <= ceiling.switches * SPARE_SWITCHES, paths[name].listing


def test_a_text_message_passes_through_every_distribution_that_serves_it(paths: dict[str, CallPath]) -> None:
    """A trace without one of them measures nothing."""
    passed = {hop.distribution for hop in paths["text_message"].hops}
    assert {"host", "kernel", "policies", "store-sqlite", "transport-openai", "observability"} <= passed


def test_a_trace_counts_a_function_once_and_every_switch() -> None:
    with tracing() as trace:
        answers = [ok({}) for _ in range(3)]
        json.dumps(len(answers))
    there = CallPath.common([trace])
    assert there.hops == [Hop("kernel", "kernel/src/jackfield/contract/tool.py", "ok")]
    assert there.counts == Counts(files=1, functions=1, switches=0)

    host, kernel = Hop("host", "a.py", "f"), Hop("kernel", "b.py", "g")
    back = CallPath.common([Trace([host, kernel, host]), Trace([host, kernel, kernel, host, kernel])])
    assert back.counts == Counts(files=2, functions=2, switches=2)
