"""What is made when pictures are ordered."""

from __future__ import annotations

from jackfield_capability_types.images import QUALITIES, SHAPES, ImageOrder

from jackfield_testkit.images_contract.studio import SIGNATURES, Studio, on_a_loop
from jackfield_testkit.store_contract.verdict import give_up, holds, same

_PROMPTS = ("a lighthouse", "Ein Leuchtturm, 灯台, 🗼", 'quotes " and \\ and\nlines', "x" * 4000)


class MakingTests:
    """What `generate` and `cost` promise."""

    @on_a_loop
    async def test_a_picture_is_made_and_kept(self, studio: Studio) -> None:
        """What is described is what is kept: type, size in bytes, prompt, provider and model."""
        async with studio.view() as view:
            made = await view.generate(ImageOrder("a lighthouse"))
            same(len(made), 1, "how many pictures an order for one made")
            kept = await view.read(made[0].id)
            if kept is None:
                give_up("a picture that was made cannot be read")
            described, content = kept
            same(described, made[0], "what is said about a picture when it is read")
            same(len(content), made[0].size, "the size of the content")
            begins = SIGNATURES.get(made[0].media_type)
            holds(begins and content.startswith(begins), f"the content is no {made[0].media_type}")
            holds("a lighthouse" in made[0].prompt, f"the prompt is lost: {made[0].prompt!r}")
            holds(made[0].provider and made[0].model, "neither provider nor model are named")

    @on_a_loop
    async def test_as_many_as_ordered(self, studio: Studio) -> None:
        """Each picture of an order has an id of its own."""
        async with studio.view() as view:
            ids: list[str] = []
            for count in (1, 2, 4):
                made = await view.generate(ImageOrder("a boat", count=count))
                same(len(made), count, f"how many pictures an order for {count} made")
                ids += [each.id for each in made]
            same(len(set(ids)), len(ids), "how many different ids the pictures have")

    @on_a_loop
    async def test_ids_cannot_be_guessed(self, studio: Studio) -> None:
        """Whoever has an id may see the picture, so ids are long and have nothing in common."""
        async with studio.view() as view:
            made = await view.generate(ImageOrder("a boat", count=4))
            for each in made:
                holds(len(each.id) >= 20, f"the id {each.id!r} is short enough to be found by trying")
                holds(
                    each.id.isascii() and each.id.isprintable(), f"the id {each.id!r} does not fit an address"
                )
            beginnings = {each.id[:8] for each in made}
            same(len(beginnings), 4, "how many different beginnings four ids have")

    @on_a_loop
    async def test_every_shape(self, studio: Studio) -> None:
        """A picture has the proportions that were ordered, and says its size in pixels."""
        async with studio.view() as view:
            for shape in SHAPES:
                (made,) = await view.generate(ImageOrder("a boat", shape=shape))
                found = _shape(made.width, made.height)
                same(found, shape, f"the shape of {made.width} x {made.height} pixels")

    @on_a_loop
    async def test_every_quality(self, studio: Studio) -> None:
        """Each quality that an order may name is understood."""
        async with studio.view() as view:
            for quality in QUALITIES:
                made = await view.generate(ImageOrder("a boat", quality=quality, avoid="people, text"))
                same(len(made), 1, f"how many pictures of the quality {quality} were made")

    @on_a_loop
    async def test_any_prompt(self, studio: Studio) -> None:
        """Other scripts, quotes, lines and length go through unchanged."""
        async with studio.view() as view:
            for prompt in _PROMPTS:
                (made,) = await view.generate(ImageOrder(prompt))
                kept = await view.read(made.id)
                holds(kept and prompt in kept[0].prompt, f"the prompt came back as {made.prompt!r:.100}")

    @on_a_loop
    async def test_the_cost_is_known_before_or_not_at_all(self, studio: Studio) -> None:
        """A number of dollars that grows with the count, or nothing; asking costs nothing."""
        async with studio.opened() as images:
            for quality in QUALITIES:
                one = images.cost(ImageOrder("a boat", quality=quality))
                four = images.cost(ImageOrder("a boat", quality=quality, count=4))
                if one is None or four is None:
                    same((one, four), (None, None), "the costs of one and of four pictures")
                else:
                    holds(one >= 0, f"a picture costs {one}")
                    holds(abs(four - 4 * one) < 0.001, f"one costs {one}, four cost {four}")


def _shape(width: int, height: int) -> str:
    if width == height:
        return "square"
    return "landscape" if width > height else "portrait"
