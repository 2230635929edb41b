"""Forms: a client completes a tool's arguments, and the call is governed like any other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from host_harness import Client, HostFolder, Provider, check, make_site, running_host
from http_client import SESSION, http_client, stream_events
from jackfield_host.transcripts import as_text
from jackfield_sessions.archive import find, session_record
from jackfield_testkit.site_packages import SitePackages

FORMS = Provider("forms", SimpleNamespace(base_url=""))
ASK = 'form hst_note {"seconds": 0}'


@pytest.fixture(scope="session")
def forms_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the tools of these tests, with a transport that supports forms."""
    folder = tmp_path_factory.mktemp("forms-site")
    SitePackages(folder).plugin("hst-forms", "from jackfield_scripted.form_transport import *\n")
    return make_site(folder)


@pytest.fixture
def host_folder(forms_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostFolder:
    """Return a working folder for the hosts of one test."""
    monkeypatch.syspath_prepend(str(forms_site))
    monkeypatch.setenv("HST_FOLDER", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return HostFolder(tmp_path, forms_site / "tool_registry.json", forms_site)


async def asked(client: Client, text: str = ASK) -> dict[str, Any]:
    """Make the host show a form; return its event."""
    forms, turns = len(client.of("form_request")), len(client.of("turn_complete"))
    await client.say("text", text=text)
    await client.until_type("turn_complete", turns + 1)
    return await client.until_type("form_request", forms + 1)


def test_a_completed_form_runs_its_tool_once_even_if_sent_repeatedly(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with running_host(host_folder, FORMS) as host, host.client("text", forms=True) as ada:
            form = await asked(ada)
            assert (form["tool"], form["values"]) == ("hst_note", {"seconds": 0})
            assert form["parameters"]["required"] == ["text"]
            assert form["description"] == "Summary of hst_note."
            values = {"seconds": 0, "text": "buy oil"}
            for _ in range(2):
                await ada.say("form_submit", formId=form["formId"], values=values, clientId="c-1")
            await ada.until_type("turn_complete", 2)
            done = await ada.until_type("tool_complete")
            assert done["data"]["text"] == "buy oil"
            (closed,) = ada.of("form_closed")
            assert (closed["formId"], closed["submitted"]) == (form["formId"], True)
            assert closed["values"] == values
            assert ada.said("user") == [ASK, "hst_note: seconds 0, text buy oil"]
            await ada.say("text", text="still there?")
            await ada.until_type("turn_complete", 3)
            assert ada.of("error") == []

    asyncio.run(main())
    assert host_folder.effects("done buy oil") == 1


def test_a_form_does_not_bypass_the_confirmation(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with running_host(host_folder, FORMS) as host, host.client("text", forms=True) as ada:
            form = await asked(ada, "form hst_book")
            await ada.say("form_submit", formId=form["formId"], values={"text": "a table"})
            card = await ada.until_type("confirmation_required")
            assert card["preview"] == "Book a table?"
            assert host_folder.effects("done a table") == 0
            await ada.say("approve", token=card["token"])
            await ada.until_type("tool_complete")

    asyncio.run(main())
    assert host_folder.effects("done a table") == 1


def test_invalid_form_values_are_returned_with_their_faults(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with running_host(host_folder, FORMS) as host, host.client("text", forms=True) as ada:
            form = await asked(ada)
            wrong = {"seconds": "soon"}
            await ada.say("form_submit", formId=form["formId"], values=wrong, clientId="c-1")
            refused = await ada.until_type("error")
            assert (refused["code"], refused["formId"]) == ("invalid_values", form["formId"])
            assert {each["path"] for each in refused["faults"]} == {"/", "/seconds"}
            assert ada.of("form_closed") == []
            await ada.say("form_submit", formId=form["formId"], values={"text": "now"}, clientId="c-1")
            await ada.until_type("tool_complete")

    asyncio.run(main())
    assert host_folder.effects("done now") == 1


def test_an_unknown_or_closed_form_is_refused(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with running_host(host_folder, FORMS) as host, host.client("text", forms=True) as ada:
            await ada.say("form_submit", formId="made-up", values={"text": "no"})
            refused = await ada.until_type("error")
            assert (refused["code"], refused["formId"]) == ("unknown_form", "made-up")
            form = await asked(ada)
            await ada.say("form_dismiss", formId=form["formId"])
            closed = await ada.until_type("form_closed")
            assert closed["submitted"] is False
            await ada.say("form_submit", formId=form["formId"], values={"text": "no"})
            refused = await ada.until_type("error", 2)
            assert refused["code"] == "already_closed"
            assert "dismissed" in refused["message"]
            assert ada.of("tool_start") == []
            # Another session of the same user has forms of its own.
            form = await asked(ada)
            async with host.client("text", forms=True) as other:
                await other.say("form_submit", formId=form["formId"], values={"text": "no"})
                assert (await other.until_type("error"))["code"] == "unknown_form"

    asyncio.run(main())
    assert host_folder.effects("done no") == 0


@pytest.mark.parametrize(
    "members",
    [
        {"formId": "f" * 201, "values": {}},
        {"formId": "", "values": {}},
        {"formId": "f", "values": {f"v{n}": n for n in range(201)}},
        {"formId": "f", "values": []},
        {"formId": "f"},
        {"formId": "f", "values": {}, "clientId": "c" * 65},
        {"formId": "f", "values": {}, "toolId": "hst_note"},
    ],
    ids=["long id", "no id", "many values", "no object", "no values", "long clientId", "a tool"],
)
def test_a_form_message_has_size_limits(host_folder: HostFolder, members: dict[str, Any]) -> None:
    async def main() -> None:
        async with running_host(host_folder, FORMS) as host, host.client("text", forms=True) as ada:
            await ada.raw.send(json.dumps({"type": "form_submit", **members}))
            assert (await ada.until_type("error"))["code"] == "invalid_message"

    asyncio.run(main())


def test_a_client_without_forms_is_asked_in_text(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with running_host(host_folder, FORMS) as host, http_client(host) as http:
            async with host.client("text") as old:
                await old.say("text", text=ASK)
                await old.until_type("turn_complete")
                assert old.said("assistant") == ["Which values shall I use for hst_note?"]
                assert old.of("form_request") == []
                token = old.token
            answer = await http.post(
                "/chat", json={"message": ASK}, headers={SESSION: token, "accept": "application/json"}
            )
            assert answer.json()["text"] == "Which values shall I use for hst_note?"
            async with host.client("text", token=token, forms=True) as new:
                assert (await asked(new))["tool"] == "hst_note"

    asyncio.run(main())


def test_a_form_is_shown_again_and_answered_after_the_session_moved_to_another_host(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with running_host(host_folder, FORMS) as here, running_host(host_folder, FORMS) as there:
            async with here.client("text", forms=True) as ada:
                form, token = await asked(ada), ada.token
            async with here.client("text", token=token, forms=True) as back:
                await back.until_type("caught_up")
                assert back.of("form_request") == [form]
            values = {"text": "over there"}
            async with there.client("text", token=token, forms=True) as back:
                await back.until_type("caught_up")
                assert back.of("form_request") == [form]
                await back.say("form_submit", formId=form["formId"], values=values, clientId="c-1")
                await back.until_type("turn_complete")
            async with there.client("text", token=token, forms=True) as again:
                await again.until_type("caught_up")
                (closed,) = again.of("form_closed")
                assert closed["submitted"] is True
                await again.say("form_submit", formId=form["formId"], values=values, clientId="c-1")
                await again.say("form_submit", formId=form["formId"], values=values, clientId="c-2")
                assert (await again.until_type("error"))["code"] == "already_closed"

    asyncio.run(main())
    assert host_folder.effects("done over there") == 1


def test_a_form_whose_end_was_saved_but_not_published_is_closed_by_the_next_host(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with running_host(host_folder, FORMS) as here, running_host(host_folder, FORMS) as there:
            async with here.client("text", forms=True) as ada:
                form, token = await asked(ada), ada.token
                # This is the state after a crash between the two steps.
                checkpoint = here.sessions.live[token.partition(".")[0]].checkpoint
                checkpoint.forms.close(form["formId"], submitted=False)
                await checkpoint.save()
            async with there.client("text", token=token, forms=True) as back:
                closed = await back.until_type("form_closed")
                assert (closed["formId"], closed["submitted"]) == (form["formId"], False)

    asyncio.run(main())


def test_a_client_of_the_event_stream_sees_forms(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            running_host(host_folder, FORMS) as host,
            http_client(host) as http,
            host.client("text", forms=True) as ada,
            http.stream("GET", "/events", headers={SESSION: ada.token}) as response,
        ):
            first = await asked(ada)
            second = await asked(ada)
            await ada.say("form_dismiss", formId=second["formId"])
            await ada.until_type("form_closed", 2)
            await ada.say("end")
            await ada.until_closed()
            events = [each.data async for each in stream_events(response) if each.name.startswith("form_")]
        for each in events:
            check(each, by_host=True)
        assert [(each["type"], each["formId"]) for each in events] == [
            ("form_request", first["formId"]),
            # The newer form for the same tool replaces the older one.
            ("form_closed", first["formId"]),
            ("form_request", second["formId"]),
            ("form_closed", second["formId"]),
        ]

    asyncio.run(main())


def test_an_exported_session_contains_its_forms(host_folder: HostFolder) -> None:
    async def main() -> str:
        async with running_host(host_folder, FORMS) as host, host.client("text", forms=True) as ada:
            form = await asked(ada)
            await ada.say("form_submit", formId=form["formId"], values={"text": "buy oil"})
            await ada.until_type("tool_complete")
            store, session_id = host.sessions.runtime.store, ada.token.partition(".")[0]
            kept = await find(store, session_id)
            assert kept
            return "\n".join(as_text(kept, await session_record(store, session_id)))

    text = asyncio.run(main())
    assert "host       showed the form for hst_note" in text
    assert "user       hst_note: text buy oil" in text
    assert "host       the form was closed" in text
