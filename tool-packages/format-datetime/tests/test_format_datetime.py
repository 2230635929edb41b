"""Conversion, daylight saving, formats, dates, distances and names."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield import ErrorType, Failure
from jackfield.registry.arguments import Arguments
from jackfield_tool_format_datetime.handler import execute

PACKAGE = resources.files("jackfield_tool_format_datetime")
SCHEMA: dict[str, Any] = json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8"))
PARAMETERS = Arguments(SCHEMA["parameters"])
RETURNS = Arguments(SCHEMA["returns"])
GUIDE = PACKAGE.joinpath("guide.md").read_text("utf-8")


def run(**args: Any) -> Any:
    """Return the data of a call as the registry makes it: validated, completed, checked against `returns`."""
    assert PARAMETERS.violations(args) == []
    PARAMETERS.fill_defaults(args)
    response = execute(args, None)  # type: ignore[arg-type]  # it uses nothing of its context
    assert response.ok, response.failure
    assert RETURNS.violations(response.data) == []
    return response.data


def refuse(**args: Any) -> Failure:
    assert PARAMETERS.violations(args) == []
    PARAMETERS.fill_defaults(args)
    failure = execute(args, None).failure  # type: ignore[arg-type]
    assert failure is not None
    assert failure.type is ErrorType.PERMANENT
    assert not failure.retryable
    return failure


# Conversion


@pytest.mark.parametrize(
    ("local", "source", "target", "iso"),
    [
        ("2026-07-01T15:00", "Europe/London", "America/Los_Angeles", "2026-07-01T07:00:00-07:00"),
        ("2026-01-01T15:00", "Europe/London", "America/Los_Angeles", "2026-01-01T07:00:00-08:00"),
        # Three weeks in March in which New York has daylight saving time and London has not.
        ("2026-03-20T15:00", "Europe/London", "America/New_York", "2026-03-20T11:00:00-04:00"),
        ("2026-06-01T12:00", "UTC", "Asia/Kolkata", "2026-06-01T17:30:00+05:30"),
        ("2026-06-01T12:00", "UTC", "Asia/Kathmandu", "2026-06-01T17:45:00+05:45"),
        ("2026-01-01T12:00", "UTC", "Australia/Adelaide", "2026-01-01T22:30:00+10:30"),
        ("2026-07-01T12:00", "UTC", "Australia/Lord_Howe", "2026-07-01T22:30:00+10:30"),
        ("2026-01-01T12:00", "UTC", "Australia/Lord_Howe", "2026-01-01T23:00:00+11:00"),
        ("2026-12-31T23:30", "America/New_York", "Pacific/Kiritimati", "2027-01-01T18:30:00+14:00"),
        ("2026-05-01T00:30", "Asia/Tokyo", "Pacific/Pago_Pago", "2026-04-30T04:30:00-11:00"),
    ],
)
def test_a_time_is_converted_between_zones(local: str, source: str, target: str, iso: str) -> None:
    data = run(datetime=local, from_timezone=source, timezone=target)
    assert data["iso"] == iso
    assert data["utc_offset"] == iso[19:]
    assert data["timezone"] == target
    assert data["epoch_ms"] == datetime.fromisoformat(iso).timestamp() * 1000
    assert "notes" not in data


def test_a_time_without_a_zone_is_in_the_target_zone() -> None:
    assert run(datetime="2026-07-01T15:00", timezone="Asia/Tokyo")["iso"] == "2026-07-01T15:00:00+09:00"


@pytest.mark.parametrize(
    "written",
    [
        "2026-07-01T12:00Z",
        "2026-07-01t12:00:00z",
        "2026-07-01 14:00+02:00",
        "2026-07-01T14:00:00 +0200",
        "2026-07-01T07:00:00.000-05",
    ],
)
def test_a_time_with_an_offset_is_absolute(written: str) -> None:
    data = run(datetime=written, timezone="Asia/Kolkata")
    assert data["iso"] == "2026-07-01T17:30:00+05:30"


def test_an_offset_takes_precedence_over_from_timezone_with_a_note() -> None:
    data = run(datetime="2026-07-01T12:00+02:00", from_timezone="America/New_York")
    assert data["iso"] == "2026-07-01T10:00:00+00:00"
    assert "from_timezone was not used" in data["notes"][0]
    assert "notes" not in run(datetime="2026-07-01T12:00-04:00", from_timezone="America/New_York")


def test_fractions_of_a_second_are_kept() -> None:
    data = run(datetime="2026-07-01T12:00:00,1239Z", style="iso")
    assert data["text"] == "2026-07-01T12:00:00.123+00:00"
    assert data["epoch_ms"] % 1000 == 123


def test_before_1970_the_epoch_is_negative() -> None:
    assert run(datetime="1969-12-31T23:59:59.500Z")["epoch_ms"] == -500


@given(
    st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=st.timezones()),  # noqa: DTZ001
    st.sampled_from(
        ["Europe/Dublin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"]
    ),
)
@settings(max_examples=150, deadline=None)
def test_converting_does_not_change_the_instant(moment: datetime, target: str) -> None:
    moment = moment.astimezone(UTC).replace(microsecond=0)
    data = run(datetime=moment.isoformat(), timezone=target, style="iso")
    assert datetime.fromisoformat(data["text"]) == moment
    assert data["epoch_ms"] == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2035, 1, 1)),  # noqa: DTZ001
    st.sampled_from(["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"]),
)
@settings(max_examples=150, deadline=None)
def test_a_changed_local_time_is_explained(local: datetime, zone: str) -> None:
    local = local.replace(second=0, microsecond=0)
    data = run(datetime=local.isoformat(), timezone=zone)
    assert data["iso"].startswith(local.isoformat()) or "does not exist" in data["notes"][0]


# Daylight saving time


@pytest.mark.parametrize(
    ("local", "zone", "iso", "moved_to"),
    [
        ("2026-03-08T02:30", "America/New_York", "2026-03-08T03:30:00-04:00", "03:30."),
        ("2026-03-29T02:00", "Europe/Berlin", "2026-03-29T03:00:00+02:00", "03:00."),
        ("2026-03-29T01:59:59", "Europe/London", "2026-03-29T02:59:59+01:00", "02:59."),
        # Half an hour only.
        ("2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-04T02:45:00+11:00", "02:45."),
        # At midnight.
        ("2026-09-06T00:30", "America/Santiago", "2026-09-06T01:30:00-03:00", "01:30."),
        # A whole day: Samoa crossed the date line.
        ("2011-12-30T10:00", "Pacific/Apia", "2011-12-31T10:00:00+14:00", "10:00 on 2011-12-31."),
    ],
)
def test_a_skipped_time_is_moved_forward_with_a_note(local: str, zone: str, iso: str, moved_to: str) -> None:
    data = run(datetime=local, timezone=zone)
    assert data["iso"] == iso
    (note,) = data["notes"]
    assert f"does not exist in {zone}" in note
    assert note.endswith(f"moved forward to {moved_to}")


@pytest.mark.parametrize(
    ("local", "zone", "first", "second"),
    [
        ("2026-11-01T01:30", "America/New_York", "-04:00", "-05:00"),
        ("2026-10-25T02:30", "Europe/Berlin", "+02:00", "+01:00"),
        ("2026-04-05T01:45", "Australia/Lord_Howe", "+11:00", "+10:30"),
        ("2026-10-25T01:00", "Europe/Dublin", "+01:00", "+00:00"),
    ],
)
def test_the_first_of_a_repeated_time_is_used_with_a_note(
    local: str, zone: str, first: str, second: str
) -> None:
    data = run(datetime=local, timezone=zone)
    assert data["utc_offset"] == first
    (note,) = data["notes"]
    assert f"occurs twice in {zone}" in note
    assert f"UTC{first}" in note
    assert f"offset {second}" in note

    as_advised = run(datetime=local + second, timezone=zone)
    assert as_advised["utc_offset"] == second
    assert as_advised["iso"][:16] == local
    assert "this is the second" in as_advised["notes"][0]


def test_hours_around_a_clock_change_have_no_note() -> None:
    for local in ("2026-03-08T01:59", "2026-03-08T03:00", "2026-11-01T00:59", "2026-11-01T02:00"):
        assert "notes" not in run(datetime=local, timezone="America/New_York")


def test_a_gap_in_the_source_zone_is_noted() -> None:
    data = run(datetime="2026-03-08T02:30", from_timezone="America/New_York", timezone="Europe/Berlin")
    assert data["iso"] == "2026-03-08T08:30:00+01:00"
    assert "America/New_York" in data["notes"][0]


def test_a_repeated_hour_in_the_target_zone_is_disambiguated() -> None:
    hours = [
        run(datetime=f"2026-10-25T0{hour}:30Z", timezone="Europe/Berlin", locale="de-DE") for hour in (0, 1)
    ]
    assert [hour["text"] for hour in hours] == ["Sonntag, 25. Oktober 2026, 02:30"] * 2
    assert ["first" in hour["notes"][0] for hour in hours] == [True, False]
    assert [hour["timezone_name"] for hour in hours] == [
        "Mitteleuropäische Sommerzeit",
        "Mitteleuropäische Normalzeit",
    ]


def test_an_hour_repeated_in_both_zones_is_noted_for_both() -> None:
    data = run(datetime="2026-10-25T02:30", from_timezone="Europe/Berlin", timezone="Europe/London")
    assert data["iso"] == "2026-10-25T01:30:00+01:00"
    assert ["Europe/Berlin" in data["notes"][0], "Europe/London" in data["notes"][1]] == [True, True]


# Formats


@pytest.mark.parametrize(
    ("locale", "text"),
    [
        ("en-US", "Saturday, July 4, 2026, 3:05 PM"),
        ("en-GB", "Saturday, 4 July 2026, 15:05"),
        ("de-DE", "Samstag, 4. Juli 2026, 15:05"),
        ("pt-BR", "sábado, 4 de julho de 2026 15:05"),
        ("fr-FR", "samedi 4 juillet 2026, 15:05"),
        ("ru-RU", "суббота, 4 июля 2026 г., 15:05"),  # noqa: RUF001
        ("el-GR", "Σάββατο 4 Ιουλίου 2026 - 3:05 μ.μ."),
        ("ja-JP", "2026年7月4日土曜日 15:05"),
        ("zh-Hant-TW", "2026年7月4日 星期六 下午3:05"),
        ("ar-EG", "السبت، 4 يوليو 2026، 3:05 م"),
        ("he-IL", "יום שבת, 4 ביולי 2026, 15:05"),
        ("hi-IN", "शनिवार, 4 जुलाई 2026, 3:05 pm"),
    ],
)
def test_dates_are_formatted_in_the_locale(locale: str, text: str) -> None:
    data = run(datetime="2026-07-04T15:05:09", locale=locale)
    assert data["text"] == text
    assert data["weekday"] in text
    assert data["locale"] == locale


@pytest.mark.parametrize(
    ("style", "both", "day", "clock"),
    [
        ("spoken", "Saturday, July 4, 2026, 3:05 PM", "Saturday, July 4, 2026", "3:05 PM"),
        (
            "full",
            "Saturday, July 4, 2026, 3:05:09 PM India Standard Time",
            "Saturday, July 4, 2026",
            "3:05:09 PM India Standard Time",
        ),
        ("long", "July 4, 2026, 3:05:09 PM +0530", "July 4, 2026", "3:05:09 PM +0530"),
        ("medium", "Jul 4, 2026, 3:05:09 PM", "Jul 4, 2026", "3:05:09 PM"),
        ("short", "7/4/26, 3:05 PM", "7/4/26", "3:05 PM"),
        ("iso", "2026-07-04T15:05:09+05:30", "2026-07-04", "15:05:09+05:30"),
    ],
)
def test_styles_and_parts_select_the_format(style: str, both: str, day: str, clock: str) -> None:
    moment = {"datetime": "2026-07-04T15:05:09", "timezone": "Asia/Kolkata", "style": style}
    assert [run(**moment, include=part)["text"] for part in ("both", "date", "time")] == [both, day, clock]


@pytest.mark.parametrize(
    ("zone", "winter", "summer"),
    [
        ("Europe/Dublin", "Greenwich Mean Time", "Irish Standard Time"),
        ("Europe/London", "Greenwich Mean Time", "British Summer Time"),
        ("America/New_York", "Eastern Standard Time", "Eastern Daylight Time"),
        ("Australia/Sydney", "Australian Eastern Daylight Time", "Australian Eastern Standard Time"),
        ("Asia/Kolkata", "India Standard Time", "India Standard Time"),
        ("America/Argentina/Buenos_Aires", "Argentina Standard Time", "Argentina Standard Time"),
        ("UTC", "Coordinated Universal Time", "Coordinated Universal Time"),
    ],
)
def test_zone_names_follow_daylight_saving_time(zone: str, winter: str, summer: str) -> None:
    for month, name in (("01", winter), ("07", summer)):
        data = run(datetime=f"2026-{month}-15T12:00", timezone=zone, style="full", locale="en-GB")
        assert data["timezone_name"] == name
        assert data["text"].endswith(name)


def test_spoken_text_has_no_typographic_spaces() -> None:
    for locale in ("en-US", "fr-FR", "ru-RU"):
        text = run(datetime="2026-07-04T15:05", locale=locale, style="full")["text"]
        assert not set(text) & {"\u00a0", "\u202f"}


def test_the_gregorian_calendar_is_noted_where_another_is_usual() -> None:
    thai = run(datetime="2026-07-04", locale="th")
    assert "2026" in thai["text"]
    assert "Buddhist" in thai["notes"][0]
    assert "Persian" in run(datetime="2026-07-04T12:00", locale="fa-IR")["notes"][0]
    assert "notes" not in run(datetime="2026-07-04T12:00", locale="fa-IR", include="time")


# Dates


def test_a_date_is_never_moved_to_another_day() -> None:
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        data = run(datetime="2026-12-24", timezone=zone, locale="pt-BR", style="long")
        assert data == {
            "text": "24 de dezembro de 2026",
            "iso": "2026-12-24",
            "weekday": "quinta-feira",
            "locale": "pt-BR",
        }
    data = run(datetime="2026-12-24", from_timezone="Asia/Tokyo", timezone="America/New_York")
    assert data["iso"] == "2026-12-24"
    assert "not converted" in data["notes"][0]


def test_a_date_has_no_time() -> None:
    assert "no time of day" in refuse(datetime="2026-12-24", include="time").message


# Now and distances


def test_now_defaults_to_the_current_time() -> None:
    before = datetime.now(UTC)
    told = datetime.fromisoformat(run(timezone="Asia/Tokyo", style="iso")["text"])
    assert timedelta(milliseconds=-1) <= told - before < timedelta(seconds=5)
    assert told.utcoffset() == timedelta(hours=9)

    given_now = run(datetime=" NOW ", timezone="Asia/Tokyo", now="2026-01-01T00:00:00Z")
    assert given_now["iso"] == "2026-01-01T09:00:00+09:00"
    assert "notes" not in run(from_timezone="Asia/Tokyo", timezone="UTC")


NOW = "2026-03-10T12:00:00Z"


@pytest.mark.parametrize(
    ("moment", "text", "days_away"),
    [
        ("2026-03-10T12:00:30Z", "in 30 seconds", 0),
        ("2026-03-10T11:59Z", "1 minute ago", 0),
        ("2026-03-10T13:25Z", "in 85 minutes", 0),
        ("2026-03-10T15:00Z", "in 3 hours", 0),
        ("2026-03-11T09:00Z", "in 21 hours", 1),
        ("2026-03-09T06:00Z", "30 hours ago", -1),
        ("2026-03-12T01:00Z", "in 2 days", 2),
        # Six and a half days are not "1 week", and the seventh calendar day is not the sixth.
        ("2026-03-17T00:00Z", "in 7 days", 7),
        ("2026-01-20T12:00Z", "49 days ago", -49),
        ("2026-07-08T12:00Z", "in 4 months", 120),
        ("2029-03-10T12:00Z", "in 3 years", 1096),
    ],
)
def test_the_distance_from_now_is_given(moment: str, text: str, days_away: int) -> None:
    data = run(datetime=moment, style="relative", now=NOW)
    assert (data["text"], data["days_away"]) == (text, days_away)


def test_relative_days_depend_on_the_zone() -> None:
    late = {"datetime": "2026-03-11T02:00Z", "style": "relative", "now": "2026-03-10T20:00Z"}
    assert run(**late, timezone="UTC")["days_away"] == 1
    assert run(**late, timezone="America/New_York")["days_away"] == 0
    day = {"datetime": "2026-03-11", "style": "relative", "now": "2026-03-10T20:00Z"}
    assert (run(**day)["text"], run(**day)["days_away"]) == ("in 1 day", 1)
    assert run(**day, timezone="Asia/Tokyo")["days_away"] == 0


def test_hours_are_counted_through_a_clock_change() -> None:
    data = run(
        datetime="2026-03-08T04:00", timezone="America/New_York", style="relative", now="2026-03-08T00:00"
    )
    assert data["text"] == "in 3 hours"


@pytest.mark.parametrize(
    ("locale", "text"),
    [
        ("de", "vor 5 Stunden"),
        ("ja", "5 時間前"),
        ("ru", "5 часов назад"),
        ("ar", "قبل 5 ساعات"),
        ("pt-BR", "há 5 horas"),
    ],
)
def test_the_distance_is_given_in_other_languages(locale: str, text: str) -> None:
    assert run(datetime="2026-03-10T07:00Z", style="relative", now=NOW, locale=locale)["text"] == text


@pytest.mark.parametrize(
    ("day", "text"),
    [("2026-03-10", "in 0 days"), ("2026-03-01", "9 days ago"), ("2026-12-10", "in 9 months")],
)
def test_the_distance_of_a_date_is_given(day: str, text: str) -> None:
    assert run(datetime=day, style="relative", now=NOW)["text"] == text


@given(st.dates(date(1900, 1, 1), date(2200, 1, 1)))
@settings(max_examples=50, deadline=None)
def test_days_away_counts_calendar_days(day: date) -> None:
    data = run(datetime=day.isoformat(), style="relative", now=NOW)
    assert date(2026, 3, 10) + timedelta(days=data["days_away"]) == day


# Unknown names


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("Asia/Tokio", "Asia/Tokyo"),
        ("tokyo", "Asia/Tokyo"),
        ("Europe/New_York", "America/New_York"),
        ("America/Berlin", "Europe/Berlin"),
        ("PST", "America/Los_Angeles"),
        ("IST", "Asia/Kolkata"),
        ("San Francisco", "America/Los_Angeles"),
        ("Asia/Mumbai", "Asia/Kolkata"),
    ],
)
@pytest.mark.parametrize("parameter", ["timezone", "from_timezone"])
def test_an_unknown_zone_gets_a_suggestion(parameter: str, name: str, meant: str) -> None:
    failure = refuse(**{parameter: name})
    assert name in failure.message
    assert failure.details is not None
    assert failure.details["parameter"] == parameter
    assert failure.details["alternatives"][0] == meant
    assert failure.suggestion is not None
    assert failure.suggestion.startswith(f"Did you mean {meant}")


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/localtime",
        "Europe/../Europe/London",
        "localtime",
        "posix/UTC",
        "C:\\x",
        "\0",
        ".",
    ],
)
def test_a_path_is_not_a_zone(name: str) -> None:
    failure = refuse(timezone=name)
    assert "no time zone" in failure.message
    assert "Area/City" in (failure.suggestion or "")


@pytest.mark.parametrize("name", ["+02:00", "UTC+2", "GMT-05:00"])
def test_an_offset_is_not_a_zone(name: str) -> None:
    assert "at the end of datetime" in (refuse(timezone=name).suggestion or "")


@pytest.mark.parametrize("name", ["america/new_york", "America/New York", "AMERICA/NEW_YORK"])
def test_zone_names_tolerate_misspellings(name: str) -> None:
    assert run(datetime="2026-07-01T12:00", timezone=name)["timezone"] == "America/New_York"


def test_a_zone_without_daylight_saving_time_gets_a_note() -> None:
    data = run(datetime="2026-07-01T12:00Z", timezone="EST")
    assert data["utc_offset"] == "-05:00"
    assert "America/New_York" in data["notes"][0]


@pytest.mark.parametrize(
    ("tag", "meant"), [("german", "de"), ("Portugese", "pt"), ("english", "en"), ("Japanese", "ja")]
)
def test_an_unknown_locale_gets_a_suggestion(tag: str, meant: str) -> None:
    failure = refuse(locale=tag)
    assert failure.details == {"parameter": "locale", "alternatives": [meant]}
    assert tag in failure.message


@pytest.mark.parametrize("tag", ["xx", "und", "root", "../de", "de/../en", "C", "en_US@x", "tlh"])
def test_an_invalid_locale_is_rejected(tag: str) -> None:
    assert "BCP 47" in (refuse(locale=tag).suggestion or "")


@pytest.mark.parametrize(
    ("tag", "used", "replaced"),
    [
        ("en_gb", "en-GB", False),
        ("zh-TW", "zh-Hant-TW", False),
        ("sr-Latn-RS", "sr-Latn-RS", False),
        ("en-GB-u-hc-h12", "en-GB", False),
        ("es-JP", "es", True),
        ("de-Latn-AQ", "de", True),
    ],
)
def test_the_nearest_locale_is_used(tag: str, used: str, replaced: bool) -> None:
    data = run(datetime="2026-07-01T12:00", locale=tag)
    assert data["locale"] == used
    assert data.get("notes") == ([f"There is no locale {tag}; {used} was used."] if replaced else None)


@pytest.mark.parametrize(
    "text",
    [
        "tomorrow",
        "2026-02-30",
        "2026-13-01T10:00",
        "2026-03-08T25:00",
        "2026-03-08T12:00+25:00",
        "1767225600",
        "03/08/2026",
        "2026-W10-1",
    ],
)
def test_an_invalid_date_is_rejected(text: str) -> None:
    failure = refuse(datetime=text)
    assert repr(text) in failure.message
    assert "ISO 8601" in (failure.suggestion or "")


def test_now_needs_a_time() -> None:
    assert refuse(now="2026-03-08").details == {"parameter": "now", "alternatives": []}


@pytest.mark.parametrize(
    "args",
    [
        {"datetime": "0001-01-01T00:00", "from_timezone": "Asia/Tokyo"},
        {"datetime": "9999-12-31T23:00", "from_timezone": "America/New_York"},
        {"datetime": "0001-01-01T00:00Z", "timezone": "America/New_York"},
    ],
)
def test_dates_at_the_limits_of_the_calendar_work(args: dict[str, str]) -> None:
    assert "outside the years 1 to 9999" in refuse(**args).message


def test_historical_offsets_have_seconds() -> None:
    assert run(datetime="1800-01-01T12:00Z", timezone="America/New_York")["utc_offset"] == "-04:56:02"


# The guide


def _blocks(info: str) -> list[dict[str, Any]]:
    return [
        json.loads(block) for block in re.findall(rf"^```{info}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    ]


def test_the_examples_of_the_guide_work() -> None:
    examples = _blocks("json")
    assert len(examples) >= 6
    results = [run(**example) for example in examples]
    assert all(len(json.dumps(result)) < 1500 for result in results)
    (shown,) = _blocks("json result")
    assert shown in results


def test_every_suggested_zone_exists() -> None:
    from jackfield_tool_format_datetime import zones

    for said, meant in zones._SAID.items():
        for zone in meant:
            ZoneInfo(zone)
        assert (refuse(timezone=said).details or {})["alternatives"] == list(meant)
