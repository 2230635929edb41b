"""The suite of pictures: those in memory pass it, broken ones do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.images import ImageOrder, Images, StoredImage
from jackfield_testkit import ImagesContractTests, MemoryImages
from jackfield_testkit.images_contract.studio import Studio
from jackfield_testkit.sealing import suite_tests

TESTS = suite_tests(ImagesContractTests)
REFUSALS = {
    "drawing": None,
    "refusing": ToolError(ErrorType.PERMANENT, "No.", suggestion="Something else."),
    "unreachable": ToolError(ErrorType.TRANSIENT, "Nobody there.", retryable=True),
}


class Remembered(MemoryImages):
    """Pictures in memory that are there again when they are opened in the same place."""

    places: ClassVar[dict[Path, dict[str, tuple[StoredImage, bytes]]]] = {}

    def __init__(self, place: Path, provider: str) -> None:
        super().__init__(refusal=REFUSALS[provider])
        self._kept = self.places.setdefault(place, {})


class TestMemoryImages(ImagesContractTests):
    async def images(self, place: Path, provider: str) -> Images:
        return Remembered(place, provider)


# Every one of these breaks one promise, and the standard test beside it has to say so.


class Miscounts(Remembered):
    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        return await super().generate(replace(order, count=1))


class Misdescribes(Remembered):
    async def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        kept = await super().read(image_id)
        return kept and (kept[0], kept[1] + b"more")


class NoPicture(Remembered):
    async def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        kept = await super().read(image_id)
        return kept and (kept[0], b"x" * kept[0].size)


class CountsIds(Remembered):
    def _made(self, order: ImageOrder) -> StoredImage:
        made = super()._made(order)
        numbered = replace(made, id=f"picture-number-{len(self._kept):08}")
        self._kept[numbered.id] = numbered, self._kept[made.id][1]
        return numbered


class AlwaysSquare(Remembered):
    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        return await super().generate(replace(order, shape="square"))


class OneQuality(Remembered):
    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        return [] if order.quality == "draft" else await super().generate(order)


class OnlyAscii(Remembered):
    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        return await super().generate(replace(order, prompt=order.prompt.encode("ascii", "ignore").decode()))


class FlatPrice(Remembered):
    def cost(self, order: ImageOrder) -> float | None:
        return 0.5


class Trims(Remembered):
    async def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        return await super().read(image_id.strip())


class Private(Remembered):
    def for_session(self, session: Any) -> MemoryImages:
        return self if session.user == "ann" else MemoryImages()


class Forgets(Remembered):
    async def close(self) -> None:
        self._kept.clear()


class TriesForEver(Remembered):
    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        try:
            return await super().generate(order)
        except ToolError as error:
            raise ToolError(ErrorType.TRANSIENT, error.message, retryable=True) from None


class BlamesTheOrder(Remembered):
    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        try:
            return await super().generate(order)
        except ToolError as error:
            raise ValueError(error.message) from None


class LeavesRubbish(Remembered):
    def __init__(self, place: Path, provider: str) -> None:
        super().__init__(place, provider)
        (place / provider).write_text("half a picture")


BROKEN: list[tuple[type[Remembered], str]] = [
    (Misdescribes, "test_a_picture_is_made_and_kept"),
    (NoPicture, "test_a_picture_is_made_and_kept"),
    (Miscounts, "test_as_many_as_ordered"),
    (CountsIds, "test_ids_cannot_be_guessed"),
    (AlwaysSquare, "test_every_shape"),
    (OneQuality, "test_every_quality"),
    (OnlyAscii, "test_any_prompt"),
    (FlatPrice, "test_the_cost_is_known_before_or_not_at_all"),
    (Trims, "test_only_an_id_finds_anything"),
    (Private, "test_whoever_has_the_id_may_see_it"),
    (Forgets, "test_pictures_are_kept_when_it_is_closed"),
    (TriesForEver, "test_what_the_provider_will_not_draw_is_permanent"),
    (BlamesTheOrder, "test_a_provider_that_is_not_there_is_transient"),
    (LeavesRubbish, "test_a_failure_leaves_nothing_behind"),
]


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_broken_pictures_are_found_out(broken: type[Remembered], test: str, tmp_path: Path) -> None:
    async def make(place: Path, provider: str) -> Images:
        return broken(place, provider)

    with pytest.raises(pytest.fail.Exception):
        getattr(TestMemoryImages(), test)(Studio(make, tmp_path / "pictures"))


def test_every_standard_test_is_proven_by_a_broken_one_and_says_what_it_is_for() -> None:
    assert set(TESTS) == {test for _, test in BROKEN}
    assert all(getattr(ImagesContractTests, name).__doc__ for name in TESTS)


def test_a_standard_test_cannot_be_dropped_silently() -> None:
    good = {"images": TestMemoryImages.images}
    for name in TESTS:
        with pytest.raises(TypeError, match=f"replaces the standard test {name}"):
            type("TestMine", (ImagesContractTests,), {**good, name: None})
    with pytest.raises(TypeError, match="define `async def images"):
        type("TestMine", (ImagesContractTests,), {})
    with pytest.raises(TypeError, match="sets __test__"):
        type("TestMine", (ImagesContractTests,), {**good, "__test__": False})
    with pytest.raises(TypeError, match="did you mean test_any_prompt"):
        type("TestMine", (ImagesContractTests,), {**good, "waived": {"test_any_prompts": "why"}})
