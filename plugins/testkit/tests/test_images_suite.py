"""The images suite: images in memory pass, and broken ones fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.images import ImageOrder, Images, StoredImage
from jackfield_testkit import ImagesContractTests, MemoryImages
from jackfield_testkit.images.harness import ImagesHarness
from jackfield_testkit.suite import suite_tests

TESTS = suite_tests(ImagesContractTests)
REFUSALS = {
    "drawing": None,
    "refusing": ToolError(ErrorType.PERMANENT, "No.", suggestion="Something else."),
    "unreachable": ToolError(ErrorType.TRANSIENT, "Nobody there.", retryable=True),
}


class Remembered(MemoryImages):
    """Images in memory that exist again when they are opened in the same folder."""

    folders: ClassVar[dict[Path, dict[str, tuple[StoredImage, bytes]]]] = {}

    def __init__(self, folder: Path, provider: str) -> None:
        super().__init__(refusal=REFUSALS[provider])
        self._stored = self.folders.setdefault(folder, {})


class TestMemoryImages(ImagesContractTests):
    async def create_images(self, folder: Path, provider: str) -> Images:
        return Remembered(folder, provider)


# Each of these breaks one guarantee, and the contract test next to it in BROKEN has to fail.


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
    def _make(self, order: ImageOrder) -> StoredImage:
        made = super()._make(order)
        numbered = replace(made, id=f"picture-number-{len(self._stored):08}")
        self._stored[numbered.id] = numbered, self._stored[made.id][1]
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
        self._stored.clear()


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
    def __init__(self, folder: Path, provider: str) -> None:
        super().__init__(folder, provider)
        (folder / provider).write_text("half a picture")


BROKEN: list[tuple[type[Remembered], str]] = [
    (Misdescribes, "test_generated_image_can_be_read"),
    (NoPicture, "test_generated_image_can_be_read"),
    (Miscounts, "test_number_of_images_matches_the_order"),
    (CountsIds, "test_ids_cannot_be_guessed"),
    (AlwaysSquare, "test_every_shape_is_supported"),
    (OneQuality, "test_every_quality_is_supported"),
    (OnlyAscii, "test_prompts_are_kept_unchanged"),
    (FlatPrice, "test_cost_scales_with_the_count_or_is_unknown"),
    (Trims, "test_only_valid_ids_find_an_image"),
    (Private, "test_any_user_with_the_id_can_read_the_image"),
    (Forgets, "test_images_survive_a_restart"),
    (TriesForEver, "test_provider_refusal_is_permanent"),
    (BlamesTheOrder, "test_unreachable_provider_is_transient"),
    (LeavesRubbish, "test_failed_order_leaves_no_files"),
]


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_broken_images_fail(broken: type[Remembered], test: str, tmp_path: Path) -> None:
    async def create(folder: Path, provider: str) -> Images:
        return broken(folder, provider)

    with pytest.raises(pytest.fail.Exception):
        getattr(TestMemoryImages(), test)(ImagesHarness(create, tmp_path / "images"))


def test_every_contract_test_finds_a_fault_and_has_a_docstring() -> None:
    assert set(TESTS) == {test for _, test in BROKEN}
    assert all(getattr(ImagesContractTests, name).__doc__ for name in TESTS)


def test_contract_test_cannot_be_dropped_silently() -> None:
    good = {"create_images": TestMemoryImages.create_images}
    for name in TESTS:
        with pytest.raises(TypeError, match=f"replaces the contract test {name}"):
            type("TestMine", (ImagesContractTests,), {**good, name: None})
    with pytest.raises(TypeError, match="define `async def create_images"):
        type("TestMine", (ImagesContractTests,), {})
    with pytest.raises(TypeError, match="sets __test__"):
        type("TestMine", (ImagesContractTests,), {**good, "__test__": False})
    with pytest.raises(TypeError, match="did you mean test_prompts_are_kept_unchanged"):
        type("TestMine", (ImagesContractTests,), {**good, "waived": {"test_prompts_are_kept": "why"}})
