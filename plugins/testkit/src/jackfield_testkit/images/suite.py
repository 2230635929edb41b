"""The contract suite for the capability `images`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.images import QUALITIES, SHAPES, ImageOrder, Images

from jackfield_testkit.context import SessionStub
from jackfield_testkit.images.harness import SIGNATURES, ImagesHarness, async_test
from jackfield_testkit.suite import ContractTests, expect, expect_equal, fail_test, require_override

_SIGNATURE = "async def create_images(self, folder, provider)"
_PROMPTS = ("a lighthouse", "Ein Leuchtturm, 灯台, 🗼", 'quotes " and \\ and\nlines', "x" * 4000)
_ID = "{id}"
_INVALID_IDS = (
    "",
    ".",
    "..",
    "/",
    "unknown",
    "0" * 32,
    "../secret",
    "../secret.txt",
    "..%2fsecret",
    "/etc/passwd",
    "C:\\secret",
    "secret\x00.png",
    f"../images/{_ID}",
    f"./{_ID}",
    f"{_ID}/",
    f"{_ID}.json",
    f"{_ID}.png",
    f"{_ID}\n",
    f" {_ID}",
    f"{_ID}\x00",
    "é" * 40,
    "x" * 5000,
)


class ImagesContractTests(ContractTests, suite=True):
    """Subclass it and define `create_images` to run the contract tests of the capability `images`.

    A contract test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report shows the
    reason. `class Ours(ImagesContractTests, abstract=True)` makes a base class that does not run itself.
    """

    overridable = frozenset({"create_images", "waived"})

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a class that does not define `create_images`."""
        require_override(cls, "create_images", _SIGNATURE)

    async def create_images(
        self, folder: Path, provider: Literal["drawing", "refusing", "unreachable"]
    ) -> Images:
        """Create the capability over a provider that draws, rejects every subject, or is unreachable.

        It stores its images in `folder`, and finds them again when it is created again.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define `{_SIGNATURE}`")

    @pytest.fixture
    def harness(self, tmp_path: Path) -> ImagesHarness:
        """Creates the capability for a contract test."""
        return ImagesHarness(self.create_images, tmp_path / "images")

    # Generating images

    @async_test
    async def test_generated_image_can_be_read(self, harness: ImagesHarness) -> None:
        """The stored image matches its description: type, size, prompt, provider and model."""
        async with harness.view() as view:
            made = await view.generate(ImageOrder("a lighthouse"))
            expect_equal(len(made), 1, "the number of images of an order for one")
            stored = await view.read(made[0].id)
            if stored is None:
                fail_test("a generated image cannot be read")
            description, content = stored
            expect_equal(description, made[0], "the description of a stored image")
            expect_equal(len(content), made[0].size, "the size of the content")
            signature = SIGNATURES.get(made[0].media_type)
            expect(signature and content.startswith(signature), f"the content is not {made[0].media_type}")
            expect("a lighthouse" in made[0].prompt, f"the prompt was changed: {made[0].prompt!r}")
            expect(made[0].provider and made[0].model, "the provider or the model is missing")

    @async_test
    async def test_number_of_images_matches_the_order(self, harness: ImagesHarness) -> None:
        """An order produces the requested number of images, each with its own id."""
        async with harness.view() as view:
            ids: list[str] = []
            for count in (1, 2, 4):
                made = await view.generate(ImageOrder("a boat", count=count))
                expect_equal(len(made), count, f"the number of images of an order for {count}")
                ids += [each.id for each in made]
            expect_equal(len(set(ids)), len(ids), "the number of different ids")

    @async_test
    async def test_ids_cannot_be_guessed(self, harness: ImagesHarness) -> None:
        """Anyone with an id can read the image, so ids are long and random."""
        async with harness.view() as view:
            made = await view.generate(ImageOrder("a boat", count=4))
            for each in made:
                expect(len(each.id) >= 20, f"the id {each.id!r} is short enough to be guessed")
                expect(
                    each.id.isascii() and each.id.isprintable(), f"the id {each.id!r} cannot be part of a URL"
                )
            prefixes = {each.id[:8] for each in made}
            expect_equal(len(prefixes), 4, "the number of different prefixes of four ids")

    @async_test
    async def test_every_shape_is_supported(self, harness: ImagesHarness) -> None:
        """An image has the ordered shape, and its description has its size in pixels."""
        async with harness.view() as view:
            for shape in SHAPES:
                (made,) = await view.generate(ImageOrder("a boat", shape=shape))
                found = _shape(made.width, made.height)
                expect_equal(found, shape, f"the shape of {made.width} x {made.height} pixels")

    @async_test
    async def test_every_quality_is_supported(self, harness: ImagesHarness) -> None:
        """Every quality that an order can request is supported."""
        async with harness.view() as view:
            for quality in QUALITIES:
                made = await view.generate(ImageOrder("a boat", quality=quality, avoid="people, text"))
                expect_equal(len(made), 1, f"the number of images of the quality {quality}")

    @async_test
    async def test_prompts_are_kept_unchanged(self, harness: ImagesHarness) -> None:
        """Long prompts, other scripts, quotes and line breaks are stored unchanged."""
        async with harness.view() as view:
            for prompt in _PROMPTS:
                (made,) = await view.generate(ImageOrder(prompt))
                stored = await view.read(made.id)
                expect(
                    stored and prompt in stored[0].prompt, f"the prompt was stored as {made.prompt!r:.100}"
                )

    @async_test
    async def test_cost_scales_with_the_count_or_is_unknown(self, harness: ImagesHarness) -> None:
        """`cost` returns an amount in dollars, proportional to the count, or None."""
        async with harness.open() as images:
            for quality in QUALITIES:
                one = images.cost(ImageOrder("a boat", quality=quality))
                four = images.cost(ImageOrder("a boat", quality=quality, count=4))
                if one is None or four is None:
                    expect_equal((one, four), (None, None), "the costs of one and of four images")
                else:
                    expect(one >= 0, f"the cost of an image is {one}")
                    expect(abs(four - 4 * one) < 0.001, f"one image costs {one}, but four cost {four}")

    # Reading images

    @async_test
    async def test_only_valid_ids_find_an_image(self, harness: ImagesHarness) -> None:
        """Unknown ids, paths and parts of file names find nothing and raise nothing."""
        async with harness.view() as view:
            (made,) = await view.generate(ImageOrder("a boat"))
            harness.folder.parent.joinpath("secret.txt").write_text("secret")
            harness.folder.parent.joinpath("secret").write_text("secret")
            for pattern in _INVALID_IDS:
                image_id = pattern.replace(_ID, made.id)
                expect_equal(await view.read(image_id), None, f"read({image_id!r:.80})")

    @async_test
    async def test_any_user_with_the_id_can_read_the_image(self, harness: ImagesHarness) -> None:
        """An image from one session can be read in another."""
        async with harness.open() as images:
            (made,) = await images.for_session(SessionStub("ann")).generate(ImageOrder("a boat"))
            for user in ("ben", None):
                stored = await images.for_session(SessionStub(user)).read(made.id)
                expect(stored and stored[0] == made, f"{user!r} cannot read an image by its id")

    @async_test
    async def test_images_survive_a_restart(self, harness: ImagesHarness) -> None:
        """After a restart, every image is unchanged."""
        async with harness.view() as view:
            made = await view.generate(ImageOrder("a boat", count=2))
            before = [await view.read(each.id) for each in made]
        async with harness.view() as view:
            expect_equal([await view.read(each.id) for each in made], before, "the images after a restart")

    # Errors

    @async_test
    async def test_provider_refusal_is_permanent(self, harness: ImagesHarness) -> None:
        """If the provider rejects a subject, the error is permanent, not retryable, and has a suggestion."""
        error = await _generation_error(harness, "refusing")
        expect_equal(error.type, ErrorType.PERMANENT, "the type of the error")
        expect_equal(error.retryable, False, "retryable")
        expect(error.suggestion, "the error has no suggestion")

    @async_test
    async def test_unreachable_provider_is_transient(self, harness: ImagesHarness) -> None:
        """If the provider is unreachable, the error is transient, without side effects."""
        error = await _generation_error(harness, "unreachable")
        expect_equal(error.type, ErrorType.TRANSIENT, "the type of the error")
        expect_equal(error.partial_side_effects, False, "partial_side_effects")

    @async_test
    async def test_failed_order_leaves_no_files(self, harness: ImagesHarness) -> None:
        """After a failed order, earlier images still exist and no files were added."""
        async with harness.view() as view:
            (made,) = await view.generate(ImageOrder("a boat"))
        before = {path.name for path in harness.folder.rglob("*")}
        for provider in ("refusing", "unreachable"):
            await _generation_error(harness, provider)
        expect_equal(
            {path.name for path in harness.folder.rglob("*")}, before, "the files after the failures"
        )
        async with harness.view() as view:
            expect(await view.read(made.id), "an image is missing after the failure of another order")


async def _generation_error(harness: ImagesHarness, provider: str) -> ToolError:
    outcome: object
    async with harness.view(provider) as view:
        try:
            outcome = f"{len(await view.generate(ImageOrder('a boat')))} images"
        except ToolError as error:
            return error
        except Exception as error:  # noqa: BLE001 - the test reports whatever was raised
            outcome = f"{type(error).__name__}: {error}"
    return fail_test(f"the {provider} provider led to {outcome}, not to a ToolError")


def _shape(width: int, height: int) -> str:
    if width == height:
        return "square"
    return "landscape" if width > height else "portrait"
