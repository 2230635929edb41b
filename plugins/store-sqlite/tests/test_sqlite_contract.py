"""The contract tests of a store on SQLite, and a check that they detect broken stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from jackfield_store_sqlite import SqliteStore
from jackfield_store_sqlite.process_identity import Machine
from jackfield_testkit.store import StoreContractTests
from jackfield_testkit.store.harness import StoreHarness


class TestSqliteStore(StoreContractTests):
    opener = "jackfield_store_sqlite:SqliteStore"

    def with_clock(self, place: str, clock: Callable[[], float]) -> SqliteStore:
        return SqliteStore(place, machine=Machine("a boot of the test", clock, clock))


# Each of these breaks one guarantee, and the contract test next to it has to fail.
BROKEN = [
    ("RecordsInTwoSteps", "test_one_of_many_processes_records_the_outcome"),
    ("TellsEveryoneThatTheyHold", "test_only_the_holding_process_can_end_a_claim"),
    ("AbandonsForOthers", "test_only_the_holding_process_can_end_a_claim"),
    ("ListsOnlyTheAbandoned", "test_claims_of_killed_processes_are_listed"),
    ("ListsWhatOthersRun", "test_claims_of_killed_processes_are_listed"),
    ("PrunesWhatTheDeadHeld", "test_claims_of_killed_processes_are_listed"),
    ("RecordsInTwoSteps", "test_recorded_outcome_is_never_in_doubt"),
    ("RefusesTheLate", "test_paused_process_keeps_claims_that_were_not_reclaimed"),
    ("LetsTheLateOverwrite", "test_paused_process_keeps_claims_that_were_not_reclaimed"),
]


def run(store: str, test: str, place: Path) -> None:
    opener = f"broken_stores:{store}"
    suite = type("TestBroken", (StoreContractTests,), {"opener": opener})()
    harness = StoreHarness(str(place), opener, lambda _place, _clock: None)
    try:
        getattr(suite, test)(harness)
    finally:
        harness.close()


@pytest.mark.parametrize(("broken", "test"), BROKEN)
def test_the_contract_suite_detects_a_broken_store(
    broken: str, test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other processes import it as well and get this process's path.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    with pytest.raises(pytest.fail.Exception):
        run(broken, test, tmp_path / "broken")
    run("Impatient", test, tmp_path / "whole")
