"""A CalDAV server that is slow, refuses, limits, disconnects or lies: the right failure, nothing lost."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from calendar_tables import read
from jackfield import ErrorType, ToolError
from jackfield_calendar.calendars import Calendars
from jackfield_capability_types.calendar import CalendarView, EventDraft
from jackfield_testkit import ToolTestContext
from jackfield_testkit.calendar import calendar, event
from jackfield_testkit.calendar.radicale import PASSWORD, USER, Radicale

START = datetime(2027, 3, 2, 9, tzinfo=UTC)
END = START + timedelta(hours=1)
DRAFT = EventDraft("Fitting", START, END, attendees=("ann@example.org",))

Act = Callable[["FaultProxy", BaseHTTPRequestHandler], None]


class FaultProxy:
    """A proxy in front of Radicale that applies a given fault to the next request of a method."""

    def __init__(self, radicale: Radicale) -> None:
        self.radicale = radicale
        self.acts: dict[str, list[Act]] = {}
        self.over = threading.Event()
        self.port = 0
        self.extra: dict[str, str] = {}

    def next(self, method: str, *acts: Act) -> None:
        self.acts.setdefault(method, []).extend(acts)

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        waiting = self.acts.get(request.command)
        (waiting.pop(0) if waiting else passes)(self, request)


def forwarded(proxy: FaultProxy, request: BaseHTTPRequestHandler) -> tuple[int, list[tuple[str, str]], bytes]:
    body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
    connection = HTTPConnection("127.0.0.1", proxy.radicale.port, timeout=30)
    connection.request(
        request.command, request.path, body, dict(request.headers.items()) | {"Connection": "close"}
    )
    answer = connection.getresponse()
    found = (answer.status, answer.getheaders(), answer.read())
    connection.close()
    return found


def passes(proxy: FaultProxy, request: BaseHTTPRequestHandler) -> None:
    status, headers, body = forwarded(proxy, request)
    kept = {name: value for name, value in headers if name.lower() not in ("connection", "content-length")}
    send(request, status, {**kept, **proxy.extra}, body)


def send(request: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes = b"") -> None:
    request.send_response_only(status)
    for name, value in {**headers, "Content-Length": str(len(body)), "Connection": "close"}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)


def says(status: int, body: bytes = b"", **headers: str) -> Act:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _, request: send(request, status, named, body)


def hangs(proxy: FaultProxy, request: BaseHTTPRequestHandler) -> None:
    proxy.over.wait(30)


def hangs_after_it_is_done(proxy: FaultProxy, request: BaseHTTPRequestHandler) -> None:
    forwarded(proxy, request)
    proxy.over.wait(30)


def breaks_off(proxy: FaultProxy, request: BaseHTTPRequestHandler) -> None:
    request.connection.close()


def drips(proxy: FaultProxy, request: BaseHTTPRequestHandler) -> None:
    request.send_response_only(207)
    request.send_header("Content-Length", "100000")
    request.end_headers()
    while not proxy.over.wait(0.05):
        try:
            request.wfile.write(b" ")
        except OSError:
            return


@pytest.fixture
def proxy(radicale: Radicale) -> Iterator[FaultProxy]:
    made = FaultProxy(radicale)

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
            """Ignore disconnected clients, which these tests cause."""

    server = Server(("127.0.0.1", 0), Handler)
    made.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


class ProxiedCalendar:
    """One calendar behind the proxy."""

    def __init__(self, proxy: FaultProxy, *objects: str, **said: Any) -> None:
        self.proxy = proxy
        self.name = secrets.token_hex(8)
        proxy.radicale.make(self.name, objects)
        self.said: dict[str, Any] = {
            "backend": "caldav",
            "url": f"http://127.0.0.1:{proxy.port}/{USER}/{self.name}/",
            "user": USER,
            "password_env": "SECRET",
            "timeout_seconds": 30,
            **said,
        }

    def run(self, work: Callable[[CalendarView], Any], password: str = PASSWORD, **more: Any) -> Any:
        async def main() -> Any:
            settings = {"calendars": {"primary": self.said}, "organizer": "studio@example.org", **more}
            made = Calendars(read(settings), {"SECRET": password})
            try:
                return await work(made.for_session(ToolTestContext(user="ada").session))
            finally:
                await made.close()

        return asyncio.run(main())

    def texts(self) -> str:
        return self.proxy.radicale.texts(self.name)


async def look(view: CalendarView) -> Any:
    return await view.busy(["primary"], START, END)


async def book(view: CalendarView) -> Any:
    return await view.create(DRAFT)


@contextmanager
def failing(kind: ErrorType) -> Iterator[list[ToolError]]:
    kept: list[ToolError] = []
    with pytest.raises(ToolError) as caught:
        yield kept
    kept.append(caught.value)
    assert caught.value.type is kind, caught.value.message
    assert PASSWORD not in f"{caught.value.message}{caught.value.details}"


@pytest.mark.parametrize("act", [hangs, drips], ids=["silent", "one byte at a time"])
def test_a_silent_server_times_out_and_can_be_retried(proxy: FaultProxy, act: Act) -> None:
    place = ProxiedCalendar(proxy, timeout_seconds=2)
    proxy.next("REPORT", act)

    async def twice(view: CalendarView) -> Any:
        with failing(ErrorType.TRANSIENT) as errors:
            await look(view)
        assert errors[0].retryable
        assert not errors[0].partial_side_effects
        return await look(view)

    assert place.run(twice).busy == ()


@pytest.mark.parametrize(
    "act", [hangs, breaks_off, says(500), says(502, b"<html>")], ids=lambda act: act.__name__
)
def test_repeating_a_call_makes_a_booking_that_did_not_arrive(proxy: FaultProxy, act: Act) -> None:
    place = ProxiedCalendar(proxy, timeout_seconds=3 if act is hangs else 30)
    proxy.next("PUT", act)

    async def twice(view: CalendarView) -> Any:
        with failing(ErrorType.TRANSIENT) as errors:
            await book(view)
        assert errors[0].retryable
        assert errors[0].partial_side_effects
        return await book(view)

    assert place.run(twice).existed is False
    assert place.texts().count("SUMMARY:Fitting") == 1


def test_repeating_a_call_finds_a_booking_whose_answer_was_lost(proxy: FaultProxy) -> None:
    place = ProxiedCalendar(proxy, timeout_seconds=3)
    proxy.next("PUT", hangs_after_it_is_done)

    async def twice(view: CalendarView) -> Any:
        with failing(ErrorType.TRANSIENT) as errors:
            await book(view)
        assert errors[0].partial_side_effects
        assert "may have been written" in errors[0].message
        return await book(view)

    found = place.run(twice)
    assert found.existed is True
    assert (found.start, found.end) == (START, END)
    assert place.texts().count("SUMMARY:Fitting") == 1


def test_a_booking_redirected_to_a_login_page_fails(proxy: FaultProxy) -> None:
    place = ProxiedCalendar(proxy)
    proxy.next("PUT", says(302, Location="/login"))
    proxy.next("GET", says(200, b"<html>Please log in</html>", Content_Type="text/html"))
    with failing(ErrorType.TRANSIENT):
        place.run(book)
    assert "SUMMARY" not in place.texts()
    assert place.run(book).existed is False


def test_a_wrong_password_is_rejected_and_never_shown(
    proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    place = ProxiedCalendar(proxy)
    caplog.set_level(logging.DEBUG)
    for work in (look, book):
        with failing(ErrorType.AUTH) as errors:
            place.run(work, password="not the password")
        assert not errors[0].retryable
    assert "not the password" not in caplog.text
    assert "SUMMARY" not in place.texts()


@pytest.mark.parametrize("method", ["REPORT", "PUT"])
def test_a_forbidden_calendar_is_rejected(proxy: FaultProxy, method: str) -> None:
    place = ProxiedCalendar(proxy)
    proxy.next(method, says(403))
    with failing(ErrorType.AUTH):
        place.run(book)


@pytest.mark.parametrize("method", ["REPORT", "PUT"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_rate_limit_reports_the_retry_delay(proxy: FaultProxy, method: str, status: int) -> None:
    place = ProxiedCalendar(proxy)
    proxy.next(method, says(status, Retry_After="7"))
    with failing(ErrorType.RATE_LIMIT) as errors:
        place.run(book)
    assert errors[0].details == {"retry_after_seconds": 7}
    assert "in 7 s" in errors[0].message
    assert "SUMMARY" not in place.texts()
    assert place.run(book).existed is False


def test_the_retry_delay_may_be_a_date_or_missing(proxy: FaultProxy) -> None:
    place = ProxiedCalendar(proxy)
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    proxy.next("REPORT", says(429, Retry_After=until), says(429))
    with failing(ErrorType.RATE_LIMIT) as errors:
        place.run(look)
    assert 60 < (errors[0].details or {})["retry_after_seconds"] <= 90
    with failing(ErrorType.RATE_LIMIT) as errors:
        place.run(look)
    assert errors[0].details == {"retry_after_seconds": None}


def test_a_calendar_unknown_to_the_server_is_a_configuration_error(proxy: FaultProxy) -> None:
    place = ProxiedCalendar(proxy)
    place.said["url"] += "gone/"
    with failing(ErrorType.PERMANENT) as errors:
        place.run(look)
    assert "does not know the configured primary calendar" in errors[0].message


def test_an_unreachable_server_is_transient(proxy: FaultProxy) -> None:
    place = ProxiedCalendar(proxy)
    place.said["url"] = f"http://127.0.0.1:1/{USER}/"
    with failing(ErrorType.TRANSIENT) as errors:
        place.run(look)
    assert errors[0].retryable


@pytest.mark.parametrize("kind", ["text/html", "text/xml"])
@pytest.mark.parametrize("status", [200, 204, 207])
@pytest.mark.parametrize("body", [b"<html><p>Welcome to our hotel</p></html>", b"<p>Welcome", b""])
def test_an_invalid_response_does_not_mean_a_free_calendar(
    proxy: FaultProxy, kind: str, status: int, body: bytes
) -> None:
    place = ProxiedCalendar(proxy)
    answer = says(status, b"" if status == 204 else body, Content_Type=kind)
    # Twice, because the client logs in and asks again when it cannot read the first answer.
    proxy.next("REPORT", answer, answer)
    with failing(ErrorType.TRANSIENT):
        place.run(look)


def test_an_incomplete_response_is_rejected(proxy: FaultProxy) -> None:
    place = ProxiedCalendar(proxy)
    xml = (
        "<multistatus xmlns='DAV:'><response><href>/all/</href>"
        "<status>HTTP/1.1 507 Insufficient Storage</status></response></multistatus>"
    )
    proxy.next("REPORT", says(207, xml.encode(), Content_Type="text/xml"))
    with failing(ErrorType.TRANSIENT):
        place.run(look)


def test_an_unreadable_event_is_reported_and_the_others_count(
    proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    good = calendar(event("20270302T100000", "20270302T103000", uid="good"))
    place = ProxiedCalendar(proxy, good)
    broken = good.replace("UID:good", "UID:bad").replace("TZID=Europe/Berlin:2027", "TZID=Atlantis:2027")
    broken = re.sub("BEGIN:VTIMEZONE.*END:VTIMEZONE\r\n", "", broken, flags=re.DOTALL)
    xml = (
        "<multistatus xmlns='DAV:' xmlns:C='urn:ietf:params:xml:ns:caldav'>"
        + "".join(
            f"<response><href>/{number}.ics</href><propstat><status>HTTP/1.1 200 OK</status><prop>"
            f"<C:calendar-data>{text}</C:calendar-data></prop></propstat></response>"
            for number, text in enumerate((good, broken))
        )
        + "</multistatus>"
    )
    proxy.next("REPORT", says(207, xml.encode(), Content_Type="text/xml"))
    agenda = place.run(look)
    assert len(agenda.busy) == 1
    assert agenda.notices == (
        "1 entry of the primary calendar could not be read, so a time that looks free may be taken.",
    )
    assert "/1.ics" in caplog.text
    assert "the time zone 'Atlantis' is unknown" in caplog.text


def test_attendees_are_reported_as_invited_only_if_the_server_invites_them(proxy: FaultProxy) -> None:
    assert ProxiedCalendar(proxy).run(book).invited == ()
    proxy.extra = {"DAV": "1, 2, calendar-access, calendar-auto-schedule"}
    place = ProxiedCalendar(proxy)
    assert place.run(book).invited == ("ann@example.org",)
    text = place.texts().replace("\r\n ", "")
    assert "ORGANIZER:mailto:studio@example.org" in text
    assert re.search(r"ATTENDEE;[^\n]*RSVP=TRUE[^\n]*:mailto:ann@example.org", text)


def test_nobody_is_invited_without_an_organizer(proxy: FaultProxy) -> None:
    proxy.extra = {"DAV": "calendar-auto-schedule"}
    settings = {"calendars": {"primary": ProxiedCalendar(proxy).said}}

    async def main() -> Any:
        made = Calendars(read(settings), {"SECRET": PASSWORD})
        booked = await made.for_session(ToolTestContext(user="ada").session).create(DRAFT)
        await made.close()
        return booked

    assert asyncio.run(main()).invited == ()


def test_a_cancelled_event_can_be_booked_again(proxy: FaultProxy) -> None:
    place = ProxiedCalendar(proxy)
    first = place.run(book)
    text = place.texts()
    (path,) = re.findall(r"[0-9a-f]{40}\.ics", propfind(place))
    called_off = text.replace("STATUS:CONFIRMED", "STATUS:CANCELLED")
    answer = proxy.radicale.request("PUT", f"/{USER}/{place.name}/{path}", called_off)
    assert answer.status in (201, 204)
    again = place.run(book)
    assert (again.uid, again.existed) == (first.uid, False)
    assert "STATUS:CONFIRMED" in place.texts()
    assert "SEQUENCE:1" in place.texts()


def propfind(place: ProxiedCalendar) -> str:
    connection = HTTPConnection("127.0.0.1", place.proxy.radicale.port, timeout=30)
    from base64 import b64encode

    token = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {token}", "Depth": "1"}
    connection.request("PROPFIND", f"/{USER}/{place.name}/", headers=headers)
    text = connection.getresponse().read().decode()
    connection.close()
    return text
