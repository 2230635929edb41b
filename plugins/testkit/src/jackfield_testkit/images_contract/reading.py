"""What is found by an id, and what never is."""

from __future__ import annotations

from jackfield_capability_types.images import ImageOrder

from jackfield_testkit.images_contract.studio import Studio, on_a_loop
from jackfield_testkit.knowledge_contract.shelf import Visitor
from jackfield_testkit.store_contract.verdict import holds, same

_ID = "{id}"
STRANGE = (
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
    f"../pictures/{_ID}",
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


class ReadingTests:
    """What `read` promises."""

    @on_a_loop
    async def test_only_an_id_finds_anything(self, studio: Studio) -> None:
        """No unknown id, no path and no part of a file's name finds anything, and nothing fails."""
        async with studio.view() as view:
            (made,) = await view.generate(ImageOrder("a boat"))
            studio.place.parent.joinpath("secret.txt").write_text("secret")
            studio.place.parent.joinpath("secret").write_text("secret")
            for pattern in STRANGE:
                image_id = pattern.replace(_ID, made.id)
                same(await view.read(image_id), None, f"read({image_id!r:.80})")

    @on_a_loop
    async def test_whoever_has_the_id_may_see_it(self, studio: Studio) -> None:
        """A picture made in one session is shown in another."""
        async with studio.opened() as images:
            (made,) = await images.for_session(Visitor("ann")).generate(ImageOrder("a boat"))
            for user in ("ben", None):
                kept = await images.for_session(Visitor(user)).read(made.id)
                holds(kept and kept[0] == made, f"{user!r} cannot see a picture of which he has the id")

    @on_a_loop
    async def test_pictures_are_kept_when_it_is_closed(self, studio: Studio) -> None:
        """After a restart every picture is there as it was."""
        async with studio.view() as view:
            made = await view.generate(ImageOrder("a boat", count=2))
            before = [await view.read(each.id) for each in made]
        async with studio.view() as view:
            same([await view.read(each.id) for each in made], before, "pictures after a restart")
