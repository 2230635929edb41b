"""What a user holds is counted on all hosts that report."""

from __future__ import annotations

import asyncio

from jackfield.host_reports import HostDirectory
from jackfield.store import MemoryStore
from jackfield.user_slots import UserSlots


def test_the_slots_of_a_host_that_has_just_started_count_at_once() -> None:
    async def main() -> None:
        store = MemoryStore()
        early, late = HostDirectory(store, "early"), HostDirectory(store, "late")
        await early.report()
        seen = UserSlots(store, early, "agent", 60)
        # The directory has read the reports, and would not read them again within a second.
        await late.report()
        await UserSlots(store, late, "agent", 60).take("ada", "task")
        assert [each.host for each in await seen.held("ada")] == [late.id]

    asyncio.run(main())


def test_the_slots_of_a_host_that_stopped_reporting_do_not_count() -> None:
    async def main() -> None:
        store = MemoryStore()
        stays, leaves = HostDirectory(store, "stays"), HostDirectory(store, "leaves")
        await leaves.report()
        await UserSlots(store, leaves, "agent", 60).take("ada", "task")
        await leaves.withdraw()
        await stays.report()
        assert await UserSlots(store, stays, "agent", 60).held("ada") == []

    asyncio.run(main())
