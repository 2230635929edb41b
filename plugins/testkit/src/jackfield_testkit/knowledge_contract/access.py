"""Who may see what."""

from __future__ import annotations

from jackfield_capability_types.knowledge import KnowledgeBase

from jackfield_testkit.knowledge_contract.shelf import LIGHTHOUSE, STUDIO, Shelf, Visitor, notes_of, on_a_loop
from jackfield_testkit.store_contract.verdict import same

_ANNS = notes_of("ann", "salary", "What Ann earns and wants to earn next year.")
_BENS = notes_of("ben", "doctor", "Ben sees the doctor about his knee on Friday.")
_PERSONAL = (_ANNS, _BENS)


class AccessTests:
    """A personal record is there for its owner, and for nobody else in any way."""

    @on_a_loop
    async def test_a_personal_record_is_for_its_owner(self, shelf: Shelf) -> None:
        """The owner finds it by searching the personal namespace, and gets it by id."""
        async with shelf.filled(*STUDIO, *_PERSONAL) as base:
            for user, query, own in (("ann", "salary", _ANNS), ("ben", "doctor", _BENS)):
                view = base.for_session(Visitor(user))
                found = await view.search(query, namespace="personal", limit=10)
                same([each.record.id for each in found][:1], [own.id], f"what {user} finds of his own")
                same([each.id for each in await view.get([own.id])], [own.id], f"what {user} gets of his own")

    @on_a_loop
    async def test_nobody_finds_what_is_not_his(self, shelf: Shelf) -> None:
        """Neither another user, nor one without a name, nor one whose name is like the owner's."""
        async with shelf.filled(*STUDIO, *_PERSONAL) as base:
            for user in ("ben", "cleo", None, "", "Ann", "ann ", "an", "ann OR ben", "*", "%"):
                for namespace in ("personal", "studio", "public"):
                    seen = await _seen(base, user, namespace)
                    same(_ANNS.id in seen, False, f"whether {user!r} finds Ann's record in {namespace}")

    @on_a_loop
    async def test_get_reveals_nothing_either(self, shelf: Shelf) -> None:
        """By id, somebody else's record is as if it did not exist."""
        async with shelf.filled(*STUDIO, *_PERSONAL) as base:
            for user in ("ben", "cleo", None, "", "Ann"):
                view = base.for_session(Visitor(user))
                got = await view.get([_ANNS.id, LIGHTHOUSE.id, "doc:unknown"])
                same([each.id for each in got], [LIGHTHOUSE.id], f"what {user!r} gets by id")

    @on_a_loop
    async def test_the_studio_is_for_everybody(self, shelf: Shelf) -> None:
        """The team's records are there whoever asks."""
        async with shelf.filled(*STUDIO, *_PERSONAL) as base:
            for user in ("ann", "cleo", None):
                seen = await _seen(base, user, "studio", "lighthouse restoration")
                same(LIGHTHOUSE.id in seen, True, f"whether {user!r} finds a record of the studio")

    @on_a_loop
    async def test_other_peoples_records_do_not_take_up_the_limit(self, shelf: Shelf) -> None:
        """One's own record is found behind any number of other people's that fit better."""
        crowd = [notes_of(f"user{number}", f"diary{number}", "diary diary diary") for number in range(60)]
        mine = notes_of("ann", "holiday", "In my diary there is a holiday.")
        async with shelf.filled(*crowd, mine) as base:
            view = base.for_session(Visitor("ann"))
            found = await view.search("diary", namespace="personal", limit=1)
            same([each.record.id for each in found], [mine.id], "what Ann finds among 60 of other people")


async def _seen(
    base: KnowledgeBase, user: str | None, namespace: str, query: str = "Ann salary notes"
) -> set[str]:
    found = await base.for_session(Visitor(user)).search(query, namespace=namespace, limit=10)
    return {each.record.id for each in found}
