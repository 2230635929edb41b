"""What `busy` tells of events, and what it never does."""

from __future__ import annotations

from jackfield_testkit.calendar_contract.desk import Desk, at, on_a_loop
from jackfield_testkit.calendar_contract.objects import calendar, event
from jackfield_testkit.store_contract.verdict import holds, same

_GUESTS = ("ATTENDEE:mailto:ann@example.org", "ATTENDEE:mailto:ben@example.org")


class PrivacyTests:
    """Who learns what."""

    @on_a_loop
    async def test_details_are_told_when_asked_for(self, desk: Desk) -> None:
        """Title and number of attendees are there with details, and only then."""
        met = calendar(event("20270302T090000", "20270302T100000", *_GUESTS, uid="met", title="Budget"))
        async with desk.calendar(met) as view:
            span = (at("2027-03-02 00:00"), at("2027-03-03 00:00"))
            (plain,) = (await view.busy(["primary"], *span)).busy
            same((plain.title, plain.attendees), (None, None), "an event without details")
            (full,) = (await view.busy(["primary"], *span, details=True)).busy
            same((full.title, full.attendees), ("Budget", 2), "an event with details")

    @on_a_loop
    async def test_private_events_stay_private(self, desk: Desk) -> None:
        """Of a private or confidential event nothing is told but its time, whoever asks."""
        objects = [
            calendar(
                event(
                    f"2027030{day}T090000",
                    f"2027030{day}T100000",
                    f"CLASS:{kind}",
                    *_GUESTS,
                    uid=kind,
                    title="Secret",
                )
            )
            for day, kind in ((2, "PRIVATE"), (3, "CONFIDENTIAL"), (4, "X-EYES-ONLY"))
        ]
        async with desk.calendar(*objects) as view:
            asked = view.busy(["primary"], at("2027-03-01 00:00"), at("2027-03-08 00:00"), details=True)
            agenda = await asked
            same(len(agenda.busy), 3, "the number of private events that take time")
            told = [each for each in agenda.busy if each.title or each.attendees is not None]
            holds(not told, f"details of a private event were told: {told}")
