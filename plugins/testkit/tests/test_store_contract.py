"""The store suite: the store in memory passes it, broken ones do not, and the page describes it."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jackfield.store import Claim, ClaimState, Doubt, MemoryStore, Store
from jackfield_testkit.sealing import suite_tests
from jackfield_testkit.store_contract import StoreContractTests
from jackfield_testkit.store_contract.world import World

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "store.md").read_text("utf-8") if DOCS.is_dir() else ""
needs_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are in the repository only")
TESTS = suite_tests(StoreContractTests)
OPENER = f"{__name__}:open_in_memory"
GOOD: dict[str, Any] = {"opener": OPENER}


def open_in_memory(place: str) -> MemoryStore:
    return MemoryStore()


class TestMemoryStore(StoreContractTests):
    opener = OPENER
    shared = False

    def with_clock(self, place: str, clock: Callable[[], float]) -> MemoryStore:
        return MemoryStore(clock)


# Every one of these breaks one promise, and the standard test beside it has to say so.


class TakesInTwoSteps(MemoryStore):
    async def take(self, key: str) -> bytes | None:
        value = await self.get(key)
        await asyncio.sleep(0)
        self._values.pop(key, None)
        return value


class ClaimsInTwoSteps(MemoryStore):
    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        known = key in self._claims
        await asyncio.sleep(0)
        if not known:
            self._claims.pop(key, None)
        return await super().claim(key, fingerprint, **options)


class IgnoresFingerprints(MemoryStore):
    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        return await super().claim(key, b"", **options)


class ReplacesResults(MemoryStore):
    async def complete(self, key: str, result: bytes, **_options: Any) -> bool:
        held = self._claims.get(key)
        if held:
            self._claims[key] = (held[0], held[1], result, key)
        return held is not None


class ForgetsResults(MemoryStore):
    async def release(self, key: str) -> None:
        self._claims.pop(key, None)


class InvitesWhoWaited(MemoryStore):
    async def outcome(self, key: str, *, within: float) -> Claim:
        found = await super().outcome(key, within=within)
        return Claim(ClaimState.RUN) if found.state is ClaimState.FREE else found


class Dispossesses(MemoryStore):
    async def reclaim(self, key: str) -> bool:
        return key in self._claims


class NeverForgets(MemoryStore):
    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> None:
        await super().put(key, value)


class SlidesTheWindow(MemoryStore):
    async def add(self, key: str, amount: int, *, window: float) -> int:
        total = await super().add(key, amount, window=window)
        self._counters[key] = (total, self.now() + window)
        return total


class TakesPrefixesForPatterns(MemoryStore):
    async def keys(self, prefix: str) -> list[str]:
        pattern = re.escape(prefix).replace("_", ".")
        return sorted(key for key in await super().keys("") if re.match(pattern, key))


class NumbersAnew(MemoryStore):
    async def append(self, stream: str, value: bytes, *, ttl: float | None = None) -> int:
        self._lengths[stream] = len(await self.read(stream))
        return await super().append(stream, value, ttl=ttl)


class ForgetsTheCount(MemoryStore):
    async def clear(self, stream: str) -> int:
        self._lengths.pop(stream, None)
        return await super().clear(stream)


class ListsWhatIsEmpty(MemoryStore):
    async def streams(self, prefix: str) -> list[str]:
        return sorted(name for name in self._streams if name.startswith(prefix))


class SkipsWhatIsNotDurable(MemoryStore):
    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        if options.get("durable", True):
            return await super().claim(key, fingerprint, **options)
        return Claim(ClaimState.RUN)


class IgnoresNotes(MemoryStore):
    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        return await super().claim(key, fingerprint, **{**options, "note": b""})


class PrunesWhatIsNoted(MemoryStore):
    async def prune(self) -> int:
        self._notes.clear()
        return await super().prune()


class ForgetsDoubtsInTime(MemoryStore):
    async def abandon(self, key: str) -> None:
        await super().abandon(key)
        self._notes.pop(key, None)


class NeverForgetsNotes(MemoryStore):
    async def complete(self, key: str, result: bytes, **options: Any) -> bool:
        note = self._notes.get(key)
        done = await super().complete(key, result, **options)
        if done and note:
            self._notes[key] = note
        return done


class IgnoresTheNewTtl(MemoryStore):
    async def complete(self, key: str, result: bytes, *, ttl: float | None = None, **options: Any) -> bool:
        return await super().complete(key, result, **options)


class AddsTheNewTtl(MemoryStore):
    async def complete(self, key: str, result: bytes, *, ttl: float | None = None, **options: Any) -> bool:
        left = self._claims[key][1] - self._clock() if ttl is not None and key in self._claims else 0.0
        return await super().complete(key, result, ttl=None if ttl is None else ttl + left, **options)


class IgnoresResults(MemoryStore):
    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        return await super().claim(key, fingerprint, **{**options, "result": None})


class TakesNothingForNoResult(MemoryStore):
    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        return await super().claim(key, fingerprint, **{**options, "result": options.get("result") or None})


class OverridesWhoRuns(MemoryStore):
    async def claim(
        self, key: str, fingerprint: bytes, *, result: bytes | None = None, **options: Any
    ) -> Claim:
        found = await super().claim(key, fingerprint, **options)
        if result is not None:
            await self.complete(key, result)
        return found


class RecordsInTwoSteps(MemoryStore):
    async def claim(
        self, key: str, fingerprint: bytes, *, result: bytes | None = None, **options: Any
    ) -> Claim:
        found = await super().claim(key, fingerprint, **options)
        if result is not None and found.state is ClaimState.RUN:
            await asyncio.sleep(0)
            await self.complete(key, result)
        return found


class HoldsWhatIsDone(MemoryStore):
    async def holds(self, key: str) -> bool:
        return key in self._claims


class HoldsWhatIsInDoubt(MemoryStore):
    async def holds(self, key: str) -> bool:
        return (await self.outcome(key, within=0)).state in (ClaimState.RUNNING, ClaimState.IN_DOUBT)


class HoldsNothingItTookOver(MemoryStore):
    async def reclaim(self, key: str) -> bool:
        return key in self._abandoned


class ReleasesWhatIsAbandoned(MemoryStore):
    async def abandon(self, key: str) -> None:
        await self.release(key)


class AbandonsWhatIsDone(MemoryStore):
    async def abandon(self, key: str) -> None:
        if held := self._claims.get(key):
            self._claims[key] = (held[0], held[1], None, key)
        await super().abandon(key)


class AbandonsInSilence(MemoryStore):
    async def abandon(self, key: str) -> None:
        if self._running(key):
            self._abandoned.add(key)


class AbandonsWhatNobodyClaimed(MemoryStore):
    async def abandon(self, key: str) -> None:
        self._abandoned.add(key)
        self._wake(key)


class TakesOverWhatHasExpired(MemoryStore):
    async def reclaim(self, key: str) -> bool:
        found = key in self._abandoned
        self._abandoned.discard(key)
        return found


class ListsByPattern(MemoryStore):
    async def in_doubt(self, prefix: str) -> list[Doubt]:
        pattern = re.escape(prefix).replace("_", ".")
        return [each for each in await super().in_doubt("") if re.match(pattern, each.key)]


class ListsUnsorted(MemoryStore):
    async def in_doubt(self, prefix: str) -> list[Doubt]:
        return [
            Doubt(key, note)
            for key, note in self._notes.items()
            if key in self._abandoned and key.startswith(prefix)
        ]


class ListsWhatHasNoNote(MemoryStore):
    async def in_doubt(self, prefix: str) -> list[Doubt]:
        keys = sorted(key for key in self._abandoned if key.startswith(prefix))
        return [Doubt(key, self._notes.get(key, b"")) for key in keys]


class ListsWhatIsRunning(MemoryStore):
    async def in_doubt(self, prefix: str) -> list[Doubt]:
        return [Doubt(key, self._notes[key]) for key in sorted(self._notes) if key.startswith(prefix)]


BROKEN: list[tuple[type[MemoryStore], str]] = [
    (TakesInTwoSteps, "test_one_takes"),
    (ClaimsInTwoSteps, "test_one_of_many_runs"),
    (IgnoresFingerprints, "test_another_fingerprint_conflicts"),
    (SkipsWhatIsNotDurable, "test_a_claim_that_need_not_be_durable_is_still_a_claim"),
    (ReplacesResults, "test_a_result_is_final"),
    (ForgetsResults, "test_a_result_is_final"),
    (InvitesWhoWaited, "test_outcome_waits"),
    (Dispossesses, "test_who_lives_cannot_be_dispossessed"),
    (IgnoresNotes, "test_a_noted_claim_is_kept_until_it_has_a_result"),
    (PrunesWhatIsNoted, "test_a_noted_claim_is_kept_until_it_has_a_result"),
    (ForgetsDoubtsInTime, "test_a_noted_claim_is_kept_until_it_has_a_result"),
    (NeverForgetsNotes, "test_a_noted_claim_with_a_result_expires"),
    (IgnoresTheNewTtl, "test_a_result_can_be_given_a_new_ttl"),
    (AddsTheNewTtl, "test_a_result_can_be_given_a_new_ttl"),
    (IgnoresResults, "test_an_outcome_is_recorded_in_one_step"),
    (TakesNothingForNoResult, "test_an_outcome_is_recorded_in_one_step"),
    (OverridesWhoRuns, "test_an_outcome_is_recorded_in_one_step"),
    (RecordsInTwoSteps, "test_of_many_outcomes_the_first_counts"),
    (HoldsWhatIsDone, "test_a_holder_is_told_that_it_holds"),
    (HoldsWhatIsInDoubt, "test_a_holder_is_told_that_it_holds"),
    (HoldsNothingItTookOver, "test_a_holder_is_told_that_it_holds"),
    (ReleasesWhatIsAbandoned, "test_an_abandoned_claim_is_in_doubt"),
    (AbandonsWhatIsDone, "test_an_abandoned_claim_is_in_doubt"),
    (AbandonsInSilence, "test_an_abandoned_claim_is_in_doubt"),
    (AbandonsWhatNobodyClaimed, "test_an_abandoned_claim_is_in_doubt"),
    (TakesOverWhatHasExpired, "test_an_abandoned_claim_without_a_note_expires"),
    (ListsByPattern, "test_claims_in_doubt_are_listed"),
    (ListsUnsorted, "test_claims_in_doubt_are_listed"),
    (ListsWhatHasNoNote, "test_claims_in_doubt_are_listed"),
    (ListsWhatIsRunning, "test_claims_in_doubt_are_listed"),
    (NeverForgets, "test_values_expire"),
    (SlidesTheWindow, "test_counters_count_within_their_window"),
    (TakesPrefixesForPatterns, "test_any_key"),
    (NumbersAnew, "test_entries_expire_and_ids_do_not_come_again"),
    (ForgetsTheCount, "test_a_cleared_stream_goes_on_counting"),
    (ListsWhatIsEmpty, "test_streams_that_hold_something_are_listed"),
]


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_a_broken_store_is_found_out(
    broken: type[MemoryStore], test: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "open_in_memory", lambda _place: broken())
    world = World("", OPENER, lambda _place, clock: broken(clock))
    suite = type("TestBroken", (StoreContractTests,), GOOD)()
    with pytest.raises(pytest.fail.Exception):
        getattr(suite, test)(world)


def test_a_standard_test_cannot_be_replaced() -> None:
    for name in TESTS:
        with pytest.raises(TypeError, match=f"replaces the standard test {name}"):
            type("TestMine", (StoreContractTests,), {**GOOD, name: None})
    with pytest.raises(TypeError, match="replaces world, which drives"):
        type("TestMine", (StoreContractTests,), {**GOOD, "world": None})
    with pytest.raises(TypeError, match="sets __test__"):
        type("TestMine", (StoreContractTests,), {**GOOD, "__test__": False})
    with pytest.raises(TypeError, match="has __init__"):
        type("TestMine", (StoreContractTests,), {**GOOD, "__init__": lambda self: None})


def test_a_subclass_has_to_say_what_it_is_about() -> None:
    with pytest.raises(TypeError, match='set opener = "module:function"'):
        type("TestMine", (StoreContractTests,), {})
    with pytest.raises(TypeError, match="did you mean test_one_takes"):
        type("TestMine", (StoreContractTests,), {**GOOD, "waived": {"test_one_take": "why"}})
    with pytest.raises(TypeError, match="without a reason"):
        type("TestMine", (StoreContractTests,), {**GOOD, "waived": {"test_one_takes": " "}})


def test_every_standard_test_says_what_it_is_for() -> None:
    assert len(TESTS) == len(set(TESTS))
    assert all(getattr(StoreContractTests, name).__doc__ for name in TESTS)


def methods() -> list[str]:
    return [name for name in vars(Store) if not name.startswith("_")]


def signature(name: str) -> str:
    method = getattr(Store, name)
    described = (
        str(inspect.signature(method))
        .replace("b''", 'b""')
        .replace("'", "")
        .replace("(self, ", "(")
        .replace("(self)", "()")
    )
    return f"{'async ' if inspect.iscoroutinefunction(method) else ''}{name}{described}"


@needs_pages
def test_every_method_is_documented_by_its_literal_signature_and_no_other() -> None:
    section = PAGE.partition("## The protocol")[2].partition("\n## ")[0]
    assert re.findall(r"^### (.+)$", section, re.MULTILINE) == [signature(name) for name in methods()]


@needs_pages
def test_every_state_of_a_claim_is_documented() -> None:
    assert [state.name for state in ClaimState if f"| `{state.name}` |" not in PAGE] == []


@needs_pages
def test_every_standard_test_and_everything_a_subclass_decides_is_documented() -> None:
    assert [name for name in TESTS if f"`{name}`" not in PAGE] == []
    assert [
        name for name in StoreContractTests.decides if not re.search(rf"^\| `{name}\b", PAGE, re.MULTILINE)
    ] == []


@needs_pages
def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in blocks] == ["noted_store.py", "test_noted_store.py"]
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
    assert "passed" in done.stdout
