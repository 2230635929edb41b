"""What narrows a search."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta, timezone

from jackfield_capability_types.knowledge import Evidence, Filters, Record

from jackfield_testkit.knowledge_contract.shelf import (
    BREAD,
    FERRY,
    LIGHTHOUSE,
    STUDIO,
    VACATION,
    Shelf,
    day,
    on_a_loop,
)
from jackfield_testkit.store_contract.verdict import same

_ALL = "lighthouse ferry vacation bread coast staff"
"""A query that every record of the shelf fits."""


class FilterTests:
    """What `filters` promises."""

    @on_a_loop
    async def test_a_type_is_the_only_type(self, shelf: Shelf) -> None:
        """A type narrows the search to records of that type."""
        async with shelf.view(*STUDIO) as view:
            for kind, expected in (
                ("project", {LIGHTHOUSE.id, FERRY.id}),
                ("process", {VACATION.id}),
                ("person", set()),
            ):
                found = await view.search(_ALL, filters=Filters(type=kind), limit=10)
                same(_ids(found), expected, f"what a search for the type {kind!r} finds")

    @on_a_loop
    async def test_all_tags_must_be_there(self, shelf: Shelf) -> None:
        """Several tags narrow further: a record needs all of them, and each as a whole."""
        async with shelf.view(*STUDIO) as view:
            for tags, expected in (
                (("coast",), {LIGHTHOUSE.id, FERRY.id}),
                (("coast", "transport"), {FERRY.id}),
                (("coast", "staff"), set()),
                (("coas",), set()),
            ):
                found = await view.search(_ALL, filters=Filters(tags=tags), limit=10)
                same(_ids(found), expected, f"what a search for the tags {tags} finds")

    @on_a_loop
    async def test_tags_of_any_kind(self, shelf: Shelf) -> None:
        """Spaces, punctuation and other scripts in a tag mean nothing but themselves."""
        for number, tag in enumerate(("q1 2026", "c++", 'say "hi"', "día/año", "東京", "a:b")):
            tagged = Record(f"doc:tagged{number}", "Lighthouse memo", "About the lighthouse.", tags=(tag,))
            async with Shelf(shelf.fill, shelf.place / str(number)).view(tagged, *STUDIO) as view:
                found = await view.search("lighthouse", filters=Filters(tags=(tag,)), limit=10)
                same(_ids(found), {tagged.id}, f"what a search for the tag {tag!r} finds")

    @on_a_loop
    async def test_both_ends_belong_to_a_range(self, shelf: Shelf) -> None:
        """A record of the very first or last moment is inside; one a moment away is outside."""
        moment = timedelta(milliseconds=1)
        async with shelf.view(*STUDIO) as view:
            for start, end, expected in (
                (day(10), day(14), {LIGHTHOUSE.id, FERRY.id, VACATION.id}),
                (day(10) + moment, day(14) - moment, {FERRY.id}),
                (day(12), None, {FERRY.id, VACATION.id}),
                (None, day(12), {LIGHTHOUSE.id, FERRY.id}),
                (day(20), day(30), set()),
            ):
                filters = Filters(updated_from=start, updated_until=end)
                found = await view.search(_ALL, filters=filters, limit=10)
                same(_ids(found), expected, f"what a search from {start} until {end} finds")

    @on_a_loop
    async def test_a_range_is_the_same_in_every_zone(self, shelf: Shelf) -> None:
        """Moments are compared, not the digits of their clocks."""
        tokyo = timezone(timedelta(hours=9))
        filters = Filters(updated_from=day(12).astimezone(tokyo), updated_until=day(12).astimezone(tokyo))
        async with shelf.view(*STUDIO) as view:
            found = await view.search(_ALL, filters=filters, limit=10)
            same(_ids(found), {FERRY.id}, "what a range in another zone finds")

    @on_a_loop
    async def test_without_a_date_no_range_fits(self, shelf: Shelf) -> None:
        """A record without a date is found without a range and never within one."""
        async with shelf.view(*STUDIO) as view:
            found = await view.search("bread", limit=10)
            same(found[0].record.id if found else None, BREAD.id, "the first record without a range")
            found = await view.search("bread", filters=Filters(updated_from=day(1)), limit=10)
            same(BREAD.id in _ids(found), False, "whether a record without a date is within a range")

    @on_a_loop
    async def test_filters_apply_before_the_limit(self, shelf: Shelf) -> None:
        """The one record that fits the filter is found behind any number that fit the query better."""
        better = [
            Record(f"doc:{number}", "Lighthouse lighthouse", "Lighthouse, lighthouse.")
            for number in range(60)
        ]
        async with shelf.view(*better, LIGHTHOUSE) as view:
            found = await view.search("lighthouse", filters=Filters(type="project"), limit=1)
            same(_ids(found), {LIGHTHOUSE.id}, "what a search for one project among 60 documents finds")

    @on_a_loop
    async def test_everything_stated_must_hold(self, shelf: Shelf) -> None:
        """Type, tags and range narrow together."""
        async with shelf.view(*STUDIO) as view:
            both = Filters(type="project", tags=("coast",), updated_from=day(11))
            same(_ids(await view.search(_ALL, filters=both, limit=10)), {FERRY.id}, "all filters together")
            contrary = Filters(type="process", tags=("coast",))
            same(_ids(await view.search(_ALL, filters=contrary, limit=10)), set(), "contrary filters")


def _ids(found: Sequence[Evidence]) -> set[str]:
    return {each.record.id for each in found}
