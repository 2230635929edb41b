"""Records by id."""

from __future__ import annotations

from jackfield_capability_types.knowledge import Record

from jackfield_testkit.knowledge_contract.shelf import BREAD, FERRY, LIGHTHOUSE, STUDIO, Shelf, on_a_loop
from jackfield_testkit.store_contract.verdict import same

_LONG = Record("doc:long", "A long one", "The tide comes in and goes out again.\n" * 3000)


class GetTests:
    """What `get` promises."""

    @on_a_loop
    async def test_the_order_asked_is_the_order_given(self, shelf: Shelf) -> None:
        """Records come as they were asked for, whole."""
        async with shelf.view(*STUDIO) as view:
            wanted = [BREAD, LIGHTHOUSE, FERRY]
            same(list(await view.get([each.id for each in wanted])), wanted, "records by id")

    @on_a_loop
    async def test_what_is_missing_is_left_out(self, shelf: Shelf) -> None:
        """An unknown id is left out, without an error and without disturbing the order."""
        async with shelf.view(*STUDIO) as view:
            ids = ["doc:nowhere", FERRY.id, "", "x" * 200, "'; --", "PROJECT:FERRY", LIGHTHOUSE.id]
            same([each.id for each in await view.get(ids)], [FERRY.id, LIGHTHOUSE.id], "known ids of many")
            same(list(await view.get([])), [], "get() of nothing")
            same(list(await view.get(["doc:nowhere"])), [], "get() of what is unknown")

    @on_a_loop
    async def test_long_records_come_whole(self, shelf: Shelf) -> None:
        """However a record is cut for searching, by id it is what was put in."""
        async with shelf.view(_LONG, *STUDIO) as view:
            got = await view.get([_LONG.id])
            same([each.text for each in got], [_LONG.text], "the text of a long record")
