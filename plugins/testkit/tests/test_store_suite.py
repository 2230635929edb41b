"""The store suite: the memory store passes, broken stores fail, and the page documents it."""

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
from jackfield.store import Claim, ClaimState, DoubtfulClaim, MemoryStore, Store
from jackfield.stream_entries import StreamEntries
from jackfield_testkit.store import StoreContractTests
from jackfield_testkit.store.harness import StoreHarness
from jackfield_testkit.suite import suite_tests

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "store-protocol.md").read_text("utf-8") if DOCS.is_dir() else ""
needs_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are only in the repository")
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


# Each of these breaks one guarantee, and the contract test next to it in BROKEN has to fail.


class TakesInTwoSteps(MemoryStore):
    async def take(self, key: str) -> bytes | None:
        value = await self.get(key)
        await asyncio.sleep(0)
        self._values.pop(key)
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
    async def append(self, stream: str, value: bytes, *more: bytes, ttl: float | None = None) -> int:
        entries = await self.read(stream)
        self._streams[stream] = StreamEntries(0)
        for entry in entries:
            self._streams[stream].append(entry.value, float("inf"))
        return await super().append(stream, value, *more, ttl=ttl)


class ForgetsTheCount(MemoryStore):
    async def clear(self, stream: str) -> int:
        count = await super().clear(stream)
        self._last_ids.pop(stream, None)
        return count


class ListsWhatIsEmpty(MemoryStore):
    async def streams(self, prefix: str) -> list[str]:
        return self._streams.with_prefix(prefix)


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
    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        pattern = re.escape(prefix).replace("_", ".")
        return [each for each in await super().in_doubt("") if re.match(pattern, each.key)]


class ListsUnsorted(MemoryStore):
    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        return [
            DoubtfulClaim(key, note)
            for key, note in self._notes.items()
            if key in self._abandoned and key.startswith(prefix)
        ]


class ListsWhatHasNoNote(MemoryStore):
    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        keys = sorted(key for key in self._abandoned if key.startswith(prefix))
        return [DoubtfulClaim(key, self._notes.get(key, b"")) for key in keys]


class ListsWhatIsRunning(MemoryStore):
    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        return [DoubtfulClaim(key, self._notes[key]) for key in sorted(self._notes) if key.startswith(prefix)]


BROKEN: list[tuple[type[MemoryStore], str]] = [
    (TakesInTwoSteps, "test_one_of_many_takes_a_value"),
    (ClaimsInTwoSteps, "test_one_of_many_claims_runs"),
    (IgnoresFingerprints, "test_different_fingerprint_conflicts"),
    (SkipsWhatIsNotDurable, "test_claim_without_durability_is_still_exclusive"),
    (ReplacesResults, "test_result_is_final"),
    (ForgetsResults, "test_result_is_final"),
    (InvitesWhoWaited, "test_outcome_waits_for_the_result"),
    (Dispossesses, "test_claim_of_a_live_holder_cannot_be_reclaimed"),
    (IgnoresNotes, "test_claim_with_a_note_is_kept_until_it_has_a_result"),
    (PrunesWhatIsNoted, "test_claim_with_a_note_is_kept_until_it_has_a_result"),
    (ForgetsDoubtsInTime, "test_claim_with_a_note_is_kept_until_it_has_a_result"),
    (NeverForgetsNotes, "test_claim_with_a_note_and_a_result_expires"),
    (IgnoresTheNewTtl, "test_result_can_have_its_own_ttl"),
    (AddsTheNewTtl, "test_result_can_have_its_own_ttl"),
    (IgnoresResults, "test_outcome_can_be_recorded_in_one_step"),
    (TakesNothingForNoResult, "test_outcome_can_be_recorded_in_one_step"),
    (OverridesWhoRuns, "test_outcome_can_be_recorded_in_one_step"),
    (RecordsInTwoSteps, "test_first_of_many_recorded_outcomes_wins"),
    (HoldsWhatIsDone, "test_holds_is_true_for_the_holder_only"),
    (HoldsWhatIsInDoubt, "test_holds_is_true_for_the_holder_only"),
    (HoldsNothingItTookOver, "test_holds_is_true_for_the_holder_only"),
    (ReleasesWhatIsAbandoned, "test_abandoned_claim_is_in_doubt"),
    (AbandonsWhatIsDone, "test_abandoned_claim_is_in_doubt"),
    (AbandonsInSilence, "test_abandoned_claim_is_in_doubt"),
    (AbandonsWhatNobodyClaimed, "test_abandoned_claim_is_in_doubt"),
    (TakesOverWhatHasExpired, "test_abandoned_claim_without_a_note_expires"),
    (ListsByPattern, "test_claims_in_doubt_are_listed"),
    (ListsUnsorted, "test_claims_in_doubt_are_listed"),
    (ListsWhatHasNoNote, "test_claims_in_doubt_are_listed"),
    (ListsWhatIsRunning, "test_claims_in_doubt_are_listed"),
    (NeverForgets, "test_values_expire"),
    (SlidesTheWindow, "test_counters_add_up_within_their_window"),
    (TakesPrefixesForPatterns, "test_keys_may_be_any_text"),
    (NumbersAnew, "test_entries_expire_and_ids_are_not_reused"),
    (ForgetsTheCount, "test_cleared_stream_continues_its_ids"),
    (ListsWhatIsEmpty, "test_streams_with_entries_are_listed"),
]


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_broken_store_fails(broken: type[MemoryStore], test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "open_in_memory", lambda _place: broken())
    harness = StoreHarness("", OPENER, lambda _place, clock: broken(clock))
    suite = type("TestBroken", (StoreContractTests,), GOOD)()
    with pytest.raises(pytest.fail.Exception):
        getattr(suite, test)(harness)


def test_contract_test_cannot_be_replaced() -> None:
    for name in TESTS:
        with pytest.raises(TypeError, match=f"replaces the contract test {name}"):
            type("TestMine", (StoreContractTests,), {**GOOD, name: None})
    with pytest.raises(TypeError, match="replaces harness, which drives"):
        type("TestMine", (StoreContractTests,), {**GOOD, "harness": None})
    with pytest.raises(TypeError, match="sets __test__"):
        type("TestMine", (StoreContractTests,), {**GOOD, "__test__": False})
    with pytest.raises(TypeError, match="has __init__"):
        type("TestMine", (StoreContractTests,), {**GOOD, "__init__": lambda self: None})


def test_incomplete_subclasses_are_rejected() -> None:
    with pytest.raises(TypeError, match='set opener = "module:function"'):
        type("TestMine", (StoreContractTests,), {})
    with pytest.raises(TypeError, match="did you mean test_one_of_many_takes_a_value"):
        type("TestMine", (StoreContractTests,), {**GOOD, "waived": {"test_one_of_many_takes": "why"}})
    with pytest.raises(TypeError, match="without a reason"):
        type("TestMine", (StoreContractTests,), {**GOOD, "waived": {"test_one_of_many_takes_a_value": " "}})


def test_every_contract_test_has_a_docstring() -> None:
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
def test_page_documents_every_method_with_its_signature() -> None:
    section = PAGE.partition("## The protocol")[2].partition("\n## ")[0]
    assert re.findall(r"^### (.+)$", section, re.MULTILINE) == [signature(name) for name in methods()]


@needs_pages
def test_page_documents_every_claim_state() -> None:
    assert [state.name for state in ClaimState if f"| `{state.name}` |" not in PAGE] == []


@needs_pages
def test_page_documents_every_contract_test_and_overridable_attribute() -> None:
    assert [name for name in TESTS if f"`{name}`" not in PAGE] == []
    assert [
        name
        for name in StoreContractTests.overridable
        if not re.search(rf"^\| `{name}\b", PAGE, re.MULTILINE)
    ] == []


@needs_pages
def test_example_runs(tmp_path: Path) -> None:
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
