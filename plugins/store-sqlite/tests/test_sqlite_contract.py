"""The standard tests of a store, on SQLite; and that those about several processes find a broken store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from jackfield_store_sqlite import SqliteStore
from jackfield_store_sqlite.process import Machine
from jackfield_testkit.store_contract import StoreContractTests
from jackfield_testkit.store_contract.world import World


class TestSqliteStore(StoreContractTests):
    opener = "jackfield_store_sqlite:SqliteStore"

    def with_clock(self, place: str, clock: Callable[[], float]) -> SqliteStore:
        return SqliteStore(place, machine=Machine("a boot of the test", clock, clock))


# Every one of these breaks one promise, and the standard test beside it has to say so.
BROKEN = [
    ("RecordsInTwoSteps", "test_one_process_records_the_outcome"),
    ("TellsEveryoneThatTheyHold", "test_only_the_holder_can_end_a_claim"),
    ("AbandonsForOthers", "test_only_the_holder_can_end_a_claim"),
    ("ListsOnlyTheAbandoned", "test_the_claims_of_the_dead_are_listed"),
    ("ListsWhatOthersRun", "test_the_claims_of_the_dead_are_listed"),
    ("PrunesWhatTheDeadHeld", "test_the_claims_of_the_dead_are_listed"),
    ("RecordsInTwoSteps", "test_a_recorded_outcome_is_never_in_doubt"),
    ("RefusesTheLate", "test_a_paused_process_keeps_what_nobody_took_over"),
    ("LetsTheLateOverwrite", "test_a_paused_process_keeps_what_nobody_took_over"),
]


def run(store: str, test: str, place: Path) -> None:
    opener = f"broken_stores:{store}"
    suite = type("TestBroken", (StoreContractTests,), {"opener": opener})()
    world = World(str(place), opener, lambda _place, _clock: None)
    try:
        getattr(suite, test)(world)
    finally:
        world.close()


@pytest.mark.parametrize(("broken", "test"), BROKEN)
def test_the_contract_suite_detects_a_broken_store(
    broken: str, test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other processes import it, too: they are given this process's path.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    with pytest.raises(pytest.fail.Exception):
        run(broken, test, tmp_path / "broken")
    run("Impatient", test, tmp_path / "whole")
