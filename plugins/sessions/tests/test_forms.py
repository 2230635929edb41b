"""Forms in a live session: requested, completed, dismissed, replaced, and resumed by another process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import pytest
from jackfield.protocol.close_codes import RESTARTING
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.settings import Settings
from jackfield.transport.protocol import Connection, ConnectionConfig
from jackfield_scripted.form_transport import FormTransport
from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.forms import CLOSED, FormError, Forms, Submission
from jackfield_sessions.hub import ClientQueue
from jackfield_sessions.live_session import LiveSession
from jackfield_testkit.site_packages import SitePackages, site

__all__ = ["site"]

HANDLER = """\
from jackfield import ok

CALLS = []


async def execute(args, ctx):
    CALLS.append(args)
    return ok({"booked": args["date"]})
"""

BOOKING: dict[str, Any] = {
    "description": "Books a table.",
    "category": "action",
    "sideEffects": "writes",
    "idempotent": False,
    "parameters": {
        "type": "object",
        "additionalProperties": False,
        "required": ["date", "time"],
        "properties": {
            "date": {"type": "string", "description": "Which day.", "format": "date"},
            "time": {"type": "string", "description": "When.", "maxLength": 5},
            "seats": {"type": "integer", "description": "For how many.", "minimum": 1, "default": 2},
        },
    },
}
GUIDE = "# book_table\n\nBooks a table.\n"
ASK = 'form book_table {"date": "2026-11-20"}'
VALUES = {"date": "2026-11-20", "time": "19:30"}


class User(ClientQueue):
    """A user in a live session, and what reached the client."""

    def __init__(self, runtime: Runtime, transport: Any, **options: Any) -> None:
        super().__init__(limit=0)
        self.runtime = runtime
        self.transport = transport
        self.got: list[dict[str, Any]] = []
        self._options = {"forms": True, **options}
        self._changed = asyncio.Event()
        self.live: LiveSession

    async def begin(self, session: Session | None = None, checkpoint: Checkpoint | None = None) -> None:
        session = session or await self.runtime.open_session("text", user="ada")
        self.live = LiveSession(
            self.runtime, session, self.transport, instructions="", checkpoint=checkpoint, **self._options
        )
        self.live.attach(self)
        await self.live.open()
        self.live.start()

    def send(self, message: Mapping[str, Any] | str) -> None:
        self.got.append(json.loads(message) if isinstance(message, str) else dict(message))
        self._changed.set()

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(30):
            while not (found := condition()):
                self._changed.clear()
                await self._changed.wait()
        return found

    async def turn_ends(self, count: int) -> None:
        await self.until(lambda: len(self.told("turn_complete")) >= count)

    async def asked(self, text: str = ASK) -> dict[str, Any]:
        """Have the transport ask with a form; the event that tells of it."""
        before = len(self.told("turn_complete"))
        await self.live.send_text(text)
        await self.turn_ends(before + 1)
        event: dict[str, Any] = self.told("form_request")[-1]
        return event

    async def refused(self, work: Awaitable[None]) -> dict[str, Any]:
        """The error that a client's request brings."""
        before = len(self.told("error"))
        await work
        errors: list[dict[str, Any]] = await self.until(lambda: self.told("error")[before:])
        return errors[0]

    def told(self, event: str) -> list[dict[str, Any]]:
        """The events of one type, with the fields that they were published with."""
        added = ("id", "type", "at")
        found = [message for message in self.got if message["type"] == event]
        return [{name: value for name, value in each.items() if name not in added} for each in found]

    @property
    def said(self) -> list[str]:
        return [each["text"] for each in self.told("message") if each["speaker"] == "user"]

    async def end(self) -> None:
        await self.live.close(RESTARTING)


@asynccontextmanager
async def begun(site: SitePackages, transport: Any = None, **options: Any) -> AsyncIterator[User]:
    """A user in a session with a transport that asks with forms."""
    site.tool("book_table", schema=BOOKING, handler=HANDLER, guide=GUIDE)
    site.tool("note")
    site.tool("spoken", schema={"allowedModes": ["voice"]})
    site.plugin("fab-forms", "from jackfield_scripted.form_transport import *\n")
    registry = site.frozen("fab-*", "jackfield-policies")
    settings = Settings(
        allow=("fab-*", "jackfield-policies"), registry=registry, store="memory", provider="forms"
    )
    runtime = await Runtime.start(settings)
    user = User(runtime, transport or runtime.transport(), **options)
    await user.begin()
    try:
        yield user
    finally:
        await user.end()
        await runtime.close()


def calls() -> list[dict[str, Any]]:
    """The arguments of every call that has run."""
    from fab_book_table import handler  # type: ignore[import-not-found]

    found: list[dict[str, Any]] = handler.CALLS
    return found


def test_a_completed_form_starts_a_turn_and_its_tool_is_called_once(site: SitePackages) -> None:
    async def main() -> None:
        async with begun(site) as user:
            form = await user.asked()
            assert form["tool"] == "book_table"
            assert form["values"] == {"date": "2026-11-20"}
            assert form["description"]
            assert form["parameters"]["required"] == ["date", "time"]
            names = [each["type"] for each in user.got if each["type"] in ("message", "form_request")]
            assert names == ["message", "message", "form_request"], "what was said stands before the form"
            turn = user.live.session.turn.number
            await user.live.submit_form(form["formId"], VALUES, client_id="m-1")
            await user.live.submit_form(form["formId"], VALUES, client_id="m-1")
            await user.turn_ends(2)
            assert user.live.session.turn.number == turn + 1
            assert user.said[-1] == "book_table: date 2026-11-20, time 19:30"
            assert user.told("message")[1:][1]["clientId"] == "m-1"
            closed = {"formId": form["formId"], "submitted": True, "values": VALUES}
            assert user.told("form_closed") == [closed]
            assert len(user.told("tool_complete")) == 1
            assert calls() == [{**VALUES, "seats": 2}]
            assert user.transport.connections[0].received[1:] == [("form", ("book_table", VALUES))]

    asyncio.run(main())


def test_a_closed_or_unknown_form_is_refused_and_runs_no_tool(site: SitePackages) -> None:
    async def main() -> None:
        async with begun(site) as user:
            live = user.live
            unknown = await user.refused(live.submit_form("made-up", VALUES))
            assert (unknown["code"], unknown["formId"]) == ("unknown_form", "made-up")
            assert "no such form" in unknown["message"]
            form = await user.asked()
            await live.dismiss_form(form["formId"])
            await user.until(lambda: user.told("form_closed"))
            assert user.told("form_closed") == [{"formId": form["formId"], "submitted": False}]
            for again in (live.dismiss_form, partial(live.submit_form, values=VALUES)):
                closed = await user.refused(again(form["formId"]))
                assert closed["code"] == "already_closed"
                assert "already been dismissed or replaced" in closed["message"]
            assert user.transport.connections[0].received[-1] == ("form", ("book_table", None))
            form = await user.asked()
            await live.submit_form(form["formId"], VALUES)
            closed = await user.refused(live.submit_form(form["formId"], VALUES, client_id="another"))
            assert "already been submitted" in closed["message"]
            await user.turn_ends(3)
            assert len(calls()) == 1

    asyncio.run(main())


def test_invalid_form_values_are_reported_and_the_form_stays_open(site: SitePackages) -> None:
    async def main() -> None:
        async with begun(site) as user:
            form = await user.asked()
            wrong = {"date": "tomorrow", "seats": 0, "place": "window"}
            refused = await user.refused(user.live.submit_form(form["formId"], wrong, client_id="m-1"))
            assert refused["code"] == "invalid_values"
            faults = {each["path"]: each["message"] for each in refused["faults"]}
            assert set(faults) == {"/", "/date", "/seats"}
            odd = {**VALUES, "seats": float("nan")}
            refused = await user.refused(user.live.submit_form(form["formId"], odd))
            assert refused["code"] == "invalid_values"
            assert user.told("form_closed") == []
            # The name under which it was refused is still free.
            await user.live.submit_form(form["formId"], VALUES, client_id="m-1")
            await user.turn_ends(2)
            assert user.said == [ASK, "book_table: date 2026-11-20, time 19:30"]

    asyncio.run(main())


def test_a_newer_form_of_the_same_tool_replaces_the_older_one(site: SitePackages) -> None:
    async def main() -> None:
        async with begun(site) as user:
            first, other = await user.asked(), await user.asked('form note {"text": "a"}')
            second = await user.asked()
            assert user.told("form_closed") == [{"formId": first["formId"], "submitted": False}]
            assert set(user.live.checkpoint.forms.open) == {other["formId"], second["formId"]}

    asyncio.run(main())


def test_a_form_of_a_tool_that_is_not_offered_is_not_shown(site: SitePackages) -> None:
    async def main() -> None:
        async with begun(site) as user:
            for tool in ("spoken", "no_such_tool"):
                await user.live.send_text(f"form {tool}")
            await user.turn_ends(2)
            assert user.told("form_request") == []

    asyncio.run(main())


def test_a_client_without_forms_is_asked_in_text_until_a_client_with_forms_attaches(
    site: SitePackages,
) -> None:
    async def main() -> None:
        async with begun(site, forms=False) as user:
            await user.live.send_text(ASK)
            await user.turn_ends(1)
            assert user.told("form_request") == []
            assert "Which values" in user.told("message")[-1]["text"]
            await user.live.accept_forms(False)
            await user.live.accept_forms(True)
            assert len(user.transport.connections) == 2
            assert (await user.asked())["tool"] == "book_table"

    asyncio.run(main())


class Plain:
    """A transport whose connections have no forms; it takes over from one that has."""

    modes = FormTransport.modes

    def __init__(self) -> None:
        self.inner = FormTransport()

    def adapter(self, mode: Any) -> str:
        return self.inner.adapter(mode)

    async def connect(self, opening: ConnectionConfig) -> Connection:
        made = await self.inner.connect(opening)
        return cast("Connection", _WithoutForms(made))

    async def close(self) -> None: ...


class _WithoutForms:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "send_form":
            raise AttributeError(name)
        return getattr(self._inner, name)


def test_a_connection_without_forms_gets_the_values_as_a_message(site: SitePackages) -> None:
    async def main() -> None:
        transport = Plain()
        async with begun(site, transport) as user:
            form = await user.asked()
            await user.live.submit_form(form["formId"], VALUES)
            await user.turn_ends(2)
            await user.live.dismiss_form((await user.asked())["formId"])
            received = transport.inner.connections[0].received
            assert [kind for kind, _ in received] == ["text"] * 3
            assert received[1][1].startswith("Call book_table with these arguments")
            assert json.dumps(VALUES, separators=(",", ":")) in received[1][1]
            assert user.said[1] == "book_table: date 2026-11-20, time 19:30"

    asyncio.run(main())


def test_a_form_survives_its_process_and_a_pending_submission_is_sent_again(site: SitePackages) -> None:
    async def main() -> None:
        async with begun(site) as user:
            form = await user.asked()
            session, store = user.live.session, user.runtime.store
            await user.end()
            checkpoint = await Checkpoint.load(session, store)
            assert checkpoint.forms.open == {form["formId"]: "book_table"}
            # The next process dies as soon as it has saved the submission.
            checkpoint.forms.close(form["formId"], submitted=True)
            checkpoint.submission = Submission("book_table", json.dumps(VALUES))
            checkpoint.response_pending = True
            await checkpoint.add_message("user", checkpoint.submission.text, client_id="m-1")
            resumed = await Checkpoint.load(session, store)
            assert resumed.forms.reconcile({form["formId"]: "book_table"}) == {form["formId"]: True}
            await user.begin(session, resumed)
            await user.live.resume_pending_work()
            await user.turn_ends(2)
            assert user.transport.connections[-1].received == [("form", ("book_table", VALUES))]
            await user.live.submit_form(form["formId"], VALUES, client_id="m-1")
            assert len(calls()) == 1
            assert user.live.checkpoint.submission is None

    asyncio.run(main())


def test_only_forms_that_were_published_are_open_after_a_takeover() -> None:
    forms = Forms({"never-told": "a", "told": "b"}, {"sent": True})
    assert forms.reconcile({"told": "b", "sent": "c", "lost": "d"}) == {"sent": True, "lost": False}
    assert forms.open == {"told": "b"}
    with pytest.raises(FormError, match="no such form"):
        forms.tool_of("never-told")


def test_closed_forms_are_remembered_up_to_a_limit() -> None:
    forms = Forms()
    for number in range(CLOSED + 10):
        forms.add(str(number), "a")
    assert len(forms.closed) == CLOSED
    assert list(forms.open) == [str(CLOSED + 9)]


def test_a_long_value_is_shortened_in_the_transcript() -> None:
    text = Submission("note", json.dumps({"text": "x" * 5000, "tags": ["a", "b"]})).text
    assert text.startswith("note: text xxx")
    assert text.endswith('…, tags ["a","b"]')
    assert len(text) < 300
    assert Submission("note", "{}").text == "note"
