"""Google Calendar over a real socket: a server that stores events in the format of the REST API."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from calendar_tables import read
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jackfield import ErrorType, ToolError
from jackfield.settings import SettingsError
from jackfield_calendar.calendars import Calendars
from jackfield_capability_types.calendar import CalendarView, EventDraft
from jackfield_testkit import ToolTestContext

START = datetime(2027, 3, 2, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
DRAFT = EventDraft("Fitting", START, START + HOUR, attendees=("ann@example.org",), description="Bring shoes.")
SECRETS = {"CLIENT": "client-7", "CLIENT_SECRET": "hush-hush", "REFRESH": "refresh-me-9"}
CALENDAR_ID = "studio@group.example.org"

Act = Callable[["Google", BaseHTTPRequestHandler], bool]
"""Handles a request; returns whether it sent the answer."""


class Google:
    """The parts of the API that the backend uses, with a list of requests."""

    def __init__(self) -> None:
        self.port = 0
        self.events: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str, dict[str, list[str]], Any]] = []
        self.acts: dict[str, list[Act]] = {}
        self.over = threading.Event()
        self.page = 250
        self.meets_after = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def next(self, method: str, *acts: Act) -> None:
        self.acts.setdefault(method, []).extend(acts)

    def add(self, event_id: str, start: Any, end: Any, **more: Any) -> None:
        def told(moment: Any) -> dict[str, str]:
            return {"date": moment} if isinstance(moment, str) else {"dateTime": moment.isoformat()}

        kept = {"id": event_id, "status": "confirmed", "start": told(start), "end": told(end), **more}
        self.events[event_id] = kept

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        split = urlsplit(request.path)
        text = request.rfile.read(int(request.headers.get("Content-Length", 0))).decode()
        body = json.loads(text) if text.startswith("{") else parse_qs(text)
        query = parse_qs(split.query)
        self.asked.append((request.command, split.path, query, body))
        key = "TOKEN" if split.path == "/token" else request.command
        waiting = self.acts.get(key)
        if waiting and waiting.pop(0)(self, request):
            return
        if split.path == "/token":
            answer(request, 200, {"access_token": "granted", "expires_in": 3600, "token_type": "Bearer"})
        elif request.headers.get("Authorization") != "Bearer granted":
            answer(request, 401, {"error": {"code": 401}})
        else:
            answer(request, *self.do(request.command, unquote(split.path).removeprefix("/v3"), query, body))

    def do(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        if path == "/freeBusy":
            (wanted,) = body["items"]
            if wanted["id"] != CALENDAR_ID:
                return 200, {"calendars": {wanted["id"]: {"errors": [{"reason": "notFound"}], "busy": []}}}
            return 200, {"calendars": {CALENDAR_ID: {"busy": self.busy(body["timeMin"], body["timeMax"])}}}
        found = re.fullmatch(rf"/calendars/{re.escape(CALENDAR_ID)}/events(?:/(\w+))?", path)
        if not found:
            return 404, {"error": {"code": 404}}
        return self.one(method, found[1], body) if found[1] or method == "POST" else self.listed(query)

    def one(self, method: str, event_id: str | None, body: Any) -> tuple[int, Any]:
        if method == "GET":
            kept = self.events.get(event_id or "")
            if kept and "conferenceData" in kept:
                self.meets_after -= 1
                self.meet(kept)
            return (200, kept) if kept else (404, {"error": {"code": 404}})
        if method == "POST" and body["id"] in self.events:
            return 409, {"error": {"code": 409, "errors": [{"reason": "duplicate"}]}}
        assert re.fullmatch("[0-9a-v]{5,1024}", body["id"])
        kept = self.events[body["id"]] = {**body, "iCalUID": f"{body['id']}@google.com"}
        if "conferenceData" in kept:
            self.meet(kept)
        return 200, kept

    def meet(self, kept: dict[str, Any]) -> None:
        if self.meets_after <= 0:
            kept["hangoutLink"] = "https://meet.example.org/abc-defg-hij"

    def listed(self, query: dict[str, list[str]]) -> tuple[int, Any]:
        assert query["singleEvents"] == ["true"]
        first = int(query.get("pageToken", ["0"])[0])
        items = sorted(self.events.values(), key=lambda each: str(each["start"]))[first : first + self.page]
        more = {"nextPageToken": str(first + self.page)} if len(self.events) > first + self.page else {}
        return 200, {"timeZone": "Europe/Berlin", "items": items, **more}

    def busy(self, start: str, end: str) -> list[dict[str, str]]:
        shown = []
        for each in self.events.values():
            if each["status"] == "cancelled" or "date" in each["start"]:
                continue
            times = [
                datetime.fromisoformat(each[key]["dateTime"]).astimezone(UTC) for key in ("start", "end")
            ]
            if times[0] < datetime.fromisoformat(end) and times[1] > datetime.fromisoformat(start):
                shown.append({"start": _z(times[0]), "end": _z(times[1])})
        return sorted(shown, key=lambda each: each["start"])


def _z(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def answer(request: BaseHTTPRequestHandler, status: int, body: Any, **headers: str) -> None:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    request.send_response_only(status)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    for name, value in {**named, "Content-Length": str(len(text)), "Connection": "close"}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(text)


def says(status: int, body: Any = None, **headers: str) -> Act:
    def act(_: Google, request: BaseHTTPRequestHandler) -> bool:
        answer(request, status, body or {"error": {"code": status}}, **headers)
        return True

    return act


def passes(google: Google, request: BaseHTTPRequestHandler) -> bool:
    return False


def hangs(google: Google, request: BaseHTTPRequestHandler) -> bool:
    google.over.wait(30)
    return True


def loses_the_answer(google: Google, request: BaseHTTPRequestHandler) -> bool:
    *_, body = google.asked[-1]
    google.one("POST", None, body)
    request.connection.close()
    return True


@pytest.fixture
def google() -> Iterator[Google]:
    made = Google()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            self.close_connection = True
            if self.raw_requestline and self.parse_request():
                made.handle(self)

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Ignore disconnected clients, which some of these tests cause."""

    server = Server(("127.0.0.1", 0), Handler)
    made.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def run(google: Google, work: Callable[[CalendarView], Any], **said: Any) -> Any:
    primary = {
        "backend": "google",
        "calendar_id": CALENDAR_ID,
        "client_id_env": "CLIENT",
        "client_secret_env": "CLIENT_SECRET",
        "refresh_token_env": "REFRESH",
        "api_url": f"{google.url}/v3",
        "token_url": f"{google.url}/token",
        "timeout_seconds": 30,
        **said.pop("primary", {}),
    }
    primary = {key: value for key, value in primary.items() if value is not None}

    async def main() -> Any:
        settings = {"zone": "Europe/Berlin", "calendars": {"primary": primary}, **said}
        made = Calendars(read(settings), SECRETS)
        try:
            return await work(made.for_session(ToolTestContext(user="ada@example.org").session))
        finally:
            await made.close()

    return asyncio.run(main())


async def look(view: CalendarView) -> Any:
    return (await view.busy(["primary"], START - 4 * HOUR, START + 8 * HOUR)).busy


async def look_closely(view: CalendarView) -> Any:
    return (await view.busy(["primary"], START - 10 * HOUR, START + 15 * HOUR, details=True)).busy


async def book(view: CalendarView) -> Any:
    return await view.create(DRAFT)


@contextmanager
def failing(kind: ErrorType) -> Iterator[list[ToolError]]:
    kept: list[ToolError] = []
    with pytest.raises(ToolError) as caught:
        yield kept
    kept.append(caught.value)
    assert caught.value.type is kind, caught.value.message
    assert not any(secret in caught.value.message for secret in SECRETS.values())


def test_only_free_busy_is_requested_without_details(google: Google) -> None:
    google.add("a", START, START + HOUR, summary="Secret")
    google.add("b", START + HOUR / 2, START + 2 * HOUR)
    (found,) = run(google, look)
    assert (found.start, found.end, found.title) == (START, START + 2 * HOUR, None)
    assert [path for _, path, *_ in google.asked] == ["/token", "/v3/freeBusy"]


def test_details_use_the_occurrences_expanded_by_google(google: Google) -> None:
    guests = [{"email": "ann@example.org"}, {"email": "ben@example.org"}]
    me = {"email": "ada@example.org", "self": True, "responseStatus": "declined"}
    google.add("a", START, START + HOUR, summary="Budget", attendees=guests)
    google.add("b", START + HOUR, START + 2 * HOUR, summary="Doctor", visibility="private", attendees=guests)
    google.add("c", START + 2 * HOUR, START + 3 * HOUR, summary="Free", transparency="transparent")
    google.add("d", START + 3 * HOUR, START + 4 * HOUR, summary="Off", status="cancelled")
    google.add("e", START + 4 * HOUR, START + 5 * HOUR, summary="Declined", attendees=[me])
    google.add("f", "2027-03-02", "2027-03-03", summary="Fair")
    google.page = 2
    found = run(google, look_closely)
    assert [(each.title, each.attendees, each.all_day) for each in found] == [
        ("Fair", 0, True),
        ("Budget", 2, False),
        (None, None, False),
    ]
    # A day in the zone that Google reports for the calendar.
    assert found[0].start == datetime(2027, 3, 1, 23, tzinfo=UTC)


def test_an_event_is_created_once_and_its_attendees_are_invited(google: Google) -> None:
    first, second = run(google, book), run(google, book)
    assert (first.existed, first.invited) == (False, ("ann@example.org",))
    assert (second.existed, second.invited, second.uid) == (True, (), first.uid)
    assert (second.start, second.end) == (START, START + HOUR)
    ((_, _, query, body),) = [
        each for each in google.asked if each[0] == "POST" and each[1].endswith("/events")
    ]
    assert query["sendUpdates"] == ["all"]
    assert body["start"] == {"dateTime": "2027-03-02T10:00:00+01:00", "timeZone": "Europe/Berlin"}
    assert (body["summary"], body["description"]) == ("Fitting", "Bring shoes.")
    assert body["attendees"] == [{"email": "ann@example.org"}]


def test_a_busy_time_is_a_conflict(google: Google) -> None:
    google.add("a", START + HOUR / 2, START + 2 * HOUR, summary="Secret")
    with failing(ErrorType.CONFLICT) as errors:
        run(google, book)
    assert (errors[0].details or {})["clash"]["start"] == "2027-03-02T10:30:00+01:00"
    assert list(google.events) == ["a"]


def test_a_deleted_event_can_be_booked_again(google: Google) -> None:
    run(google, book)
    (kept,) = google.events.values()
    kept["status"] = "cancelled"
    assert run(google, book).existed is False
    assert [each["status"] for each in google.events.values()] == ["confirmed"]


def test_an_event_created_first_by_another_host_is_detected(google: Google) -> None:
    run(google, book)
    # This host checked just before the other one wrote.
    google.next("GET", says(404))
    google.next("POST", says(200, {"calendars": {CALENDAR_ID: {"busy": []}}}))
    assert run(google, book).existed is True
    assert len(google.events) == 1


@pytest.mark.parametrize("later", [0, 1])
def test_meeting_links_are_created_by_google(google: Google, later: int) -> None:
    async def with_link(view: CalendarView) -> Any:
        assert view.has_meeting_links
        return await view.create(EventDraft("Call", START, START + HOUR, meeting_link=True))

    google.meets_after = later
    made = run(google, with_link, meetings={"google_meet": True})
    assert made.meeting_url == "https://meet.example.org/abc-defg-hij"
    (kept,) = google.events.values()
    assert kept["conferenceData"]["createRequest"]["conferenceSolutionKey"] == {"type": "hangoutsMeet"}
    assert run(google, with_link, meetings={"google_meet": True}).meeting_url == made.meeting_url


def test_a_pending_meeting_link_is_not_invented(google: Google) -> None:
    google.meets_after = 5

    async def with_link(view: CalendarView) -> Any:
        return await view.create(EventDraft("Call", START, START + HOUR, meeting_link=True))

    assert run(google, with_link, meetings={"google_meet": True}).meeting_url is None


def test_there_are_no_links_without_google_meet(google: Google) -> None:
    async def with_link(view: CalendarView) -> Any:
        assert not view.has_meeting_links
        return await view.create(EventDraft("Call", START, START + HOUR, meeting_link=True))

    with failing(ErrorType.PERMANENT):
        run(google, with_link)
    assert google.events == {}


QUOTA = {"error": {"code": 403, "errors": [{"reason": "userRateLimitExceeded"}]}}


@pytest.mark.parametrize(
    ("act", "kind", "details"),
    [
        (says(401), ErrorType.AUTH, None),
        (says(403), ErrorType.AUTH, None),
        (says(403, QUOTA), ErrorType.RATE_LIMIT, {"retry_after_seconds": None}),
        (says(429, Retry_After="12"), ErrorType.RATE_LIMIT, {"retry_after_seconds": 12}),
        (says(503, Retry_After="3"), ErrorType.RATE_LIMIT, {"retry_after_seconds": 3}),
        (says(503), ErrorType.TRANSIENT, None),
        (says(500, b"<html>"), ErrorType.TRANSIENT, None),
        (says(200, b"<html>"), ErrorType.TRANSIENT, None),
        (says(400), ErrorType.PERMANENT, None),
        (says(404), ErrorType.PERMANENT, None),
        (hangs, ErrorType.TRANSIENT, None),
    ],
)
def test_google_errors_map_to_error_types(google: Google, act: Act, kind: ErrorType, details: Any) -> None:
    google.next("POST", act)
    with failing(kind) as errors:
        run(google, look, primary={"timeout_seconds": 2 if act is hangs else 30})
    assert errors[0].details == details
    assert errors[0].retryable is (kind in (ErrorType.RATE_LIMIT, ErrorType.TRANSIENT))


def test_repeating_a_call_finds_a_booking_whose_answer_was_lost(google: Google) -> None:
    google.next("POST", passes, loses_the_answer)
    with failing(ErrorType.TRANSIENT) as errors:
        run(google, book)
    assert errors[0].partial_side_effects
    assert run(google, book).existed is True
    assert len(google.events) == 1


def test_a_calendar_that_is_not_shared_is_a_configuration_error(google: Google) -> None:
    with failing(ErrorType.PERMANENT):
        run(google, look, primary={"calendar_id": "somebody@example.org"})


def test_a_token_is_requested_once_and_secrets_are_not_logged(
    google: Google, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def twice(view: CalendarView) -> None:
        await look(view)
        await look(view)

    run(google, twice)
    (asked,) = [body for _, path, _, body in google.asked if path == "/token"]
    assert asked["grant_type"] == ["refresh_token"]
    assert asked["refresh_token"] == ["refresh-me-9"]
    assert not any(secret in caplog.text for secret in (*SECRETS.values(), "granted"))


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (says(400, {"error": "invalid_grant"}), ErrorType.AUTH),
        (says(401, {"error": "invalid_client"}), ErrorType.AUTH),
        (hangs, ErrorType.TRANSIENT),
    ],
)
def test_token_server_failures_map_to_error_types(google: Google, act: Act, kind: ErrorType) -> None:
    google.next("TOKEN", act)
    with failing(kind):
        run(google, look, primary={"timeout_seconds": 2 if act is hangs else 30})
    assert run(google, look) == ()


@pytest.fixture(scope="module")
def key() -> str:
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem.decode()


def test_a_service_account_acts_for_the_session_user(google: Google, key: str, tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    account = {
        "type": "service_account",
        "client_email": "agent@project.example.org",
        "private_key": key,
        "private_key_id": "1",
        "token_uri": f"{google.url}/token",
    }
    path.write_text(json.dumps(account))
    tokens = dict.fromkeys(("client_id_env", "client_secret_env", "refresh_token_env", "token_url"))
    primary = {**tokens, "service_account_file": str(path), "subject": "{user}"}
    assert run(google, look, primary=primary) == ()
    (asked,) = [body for _, path, _, body in google.asked if path == "/token"]
    claims = asked["assertion"][0].split(".")[1]
    said = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert (said["iss"], said["sub"]) == ("agent@project.example.org", "ada@example.org")
    assert said["scope"] == "https://www.googleapis.com/auth/calendar"


def test_an_invalid_key_file_is_named_but_its_content_is_not_shown(google: Google, tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    path.write_text('{"private_key": "hush"}')
    tokens = dict.fromkeys(("client_id_env", "client_secret_env", "refresh_token_env"))
    with pytest.raises(SettingsError, match=r"service_account_file: .*account\.json") as caught:
        run(google, look, primary={**tokens, "service_account_file": str(path)})
    assert "hush" not in str(caught.value)
