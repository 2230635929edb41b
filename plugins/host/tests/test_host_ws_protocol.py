"""The protocol is published and documented as the host implements it."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from host_harness import HostFolder, check, running_host, scripted_provider
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield.protocol.close_codes import CLOSE_REASONS
from jackfield.protocol.codec import InvalidMessageError, Message, encode, members, message_type
from jackfield.protocol.messages import (
    ALL_MESSAGES,
    CLIENT_MESSAGES,
    HOST_MESSAGES,
    FormFault,
    OfferedTool,
    PartialAnswer,
)
from jackfield_host.client_messages import message_schemas, parse_client_message, parse_first_message

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "protocol.md").read_text("utf-8") if DOCS.is_dir() else ""
needs_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are in the repository only")


def section(name: str) -> str:
    """Return the section of the page about one message."""
    found = re.search(rf"^### `{name}`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/protocol.md does not describe {name}"
    return found[1]


def names(message: type[Message]) -> set[str]:
    return {member.wire for member in members(message)}


@pytest.mark.parametrize("message", ALL_MESSAGES, ids=lambda message: message.__name__)
@needs_pages
def test_exactly_the_existing_messages_and_members_are_documented(message: type[Message]) -> None:
    rows = re.findall(r"^\| (`.*?) \|", section(message_type(message)), re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert documented == names(message)


@needs_pages
def test_the_parts_of_a_session_are_documented() -> None:
    text = section("session")
    assert all(f"`{name}`" in text for part in (OfferedTool, PartialAnswer) for name in names(part))
    assert all(f"`{name}`" in section("error") for name in names(FormFault))


@needs_pages
def test_every_documented_message_exists() -> None:
    documented = re.findall(r"^### `(\w+)`$", PAGE, re.MULTILINE)
    assert sorted(documented) == sorted(map(message_type, ALL_MESSAGES))


@needs_pages
def test_every_close_code_is_documented_with_its_advice() -> None:
    rows = re.findall(r"^\| (\d{4}) \| `(\w+)` \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    assert {(int(code), name, reason, advice) for code, name, reason, advice in rows} == {
        (each.code, each.name, each.reason, each.advice) for each in CLOSE_REASONS
    }
    assert len({each.code for each in CLOSE_REASONS}) == len(CLOSE_REASONS)
    # The reason of a close frame is limited to 123 bytes.
    assert all(len(each.reason.encode()) <= 123 for each in CLOSE_REASONS)


@needs_pages
def test_every_example_matches_the_published_schema() -> None:
    examples = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    ours = {message_type(message) for message in HOST_MESSAGES}
    assert len(examples) >= 6
    for example in examples:
        check(example, by_host=example["type"] in ours)


@needs_pages
def test_the_handshake_example_works_and_is_refused_without_an_origin(
    host_folder: HostFolder, tmp_path: Path
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    async def played(text: str, port: int) -> tuple[str, str]:
        (tmp_path / "example.py").write_text(text)
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(tmp_path / "example.py"), str(port),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), 60)
        return out.decode(), err.decode()

    async def main() -> None:
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            out, err = await played(example, host.port)
            assert re.fullmatch(r"[0-9a-f]{32}\n", out), err
            _, err = await played(example.replace("origin=own, ", ""), host.port)
            assert "HTTP 403" in err

    asyncio.run(main())


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ('{"type": "start", "timezone": "UTC"}',
         "timezone: there is no such member; did you mean 'timeZone'?"),
        ('{"type": "strat"}', "type: there is no such type here; did you mean 'start'?"),
        ('{"lastEvent": 1}', "type: it is missing"),
        ('{"type": "resume"}', "token: it is missing"),
        ('{"type": "resume", "token": "a", "lastEvent": -1}', "lastEvent: expected at least 0"),
        ('{"type": "resume", "token": "a", "lastEvent": "b"}', "lastEvent: expected an integer"),
        ('{"type": "start", "language": 5}', "language: expected a string"),
        ('{"type": "start", "timeZone": "Europe/Berlim"}',
         "timeZone: there is no such time zone; did you mean 'Europe/Berlin'?"),
        ('{"type": "start", "timeZone": "Europe"}', "timeZone: there is no such time zone; did you mean"),
        ('{"type": "start", "timeZone": "../../etc/passwd"}', "timeZone: there is no such time zone; "),
        ('"start"', "expected an object"),
        ("start", "this is not JSON: "),
    ],
)  # fmt: skip
def test_invalid_messages_are_described_in_plain_words(said: str, sentence: str) -> None:
    with pytest.raises(InvalidMessageError) as caught:
        parse_first_message(said)
    assert str(caught.value).startswith(f"Invalid message: {sentence}")


def test_a_browser_without_a_known_time_zone_is_accepted() -> None:
    assert parse_first_message('{"type": "start", "timeZone": "Etc/Unknown"}').time_zone == "Etc/Unknown"


def test_an_unknown_time_zone_is_an_invalid_message(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            async with host.connected("text") as ada:
                await ada.say("start", timeZone="Mars/Olympus")
                assert (await ada.until_closed())[0] == 4004
            (told,) = ada.of("error")
            assert (told["code"], "no such time zone" in told["message"]) == ("invalid_message", True)
            assert not served.server.requests

    asyncio.run(main())


def test_the_asyncapi_document_is_served_and_its_references_resolve(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            url = f"http://127.0.0.1:{host.port}/asyncapi.json"
            async with httpx.AsyncClient() as client:
                answer = await client.get(url)
                assert answer.status_code == 200
                document = answer.json()
                refused = await client.get(url, headers={"Origin": "https://evil.example"})
                assert refused.status_code == 403
        assert document["asyncapi"] == "3.0.0"
        assert {each["address"] for each in document["channels"].values()} == {"/ws/text", "/ws/voice"}
        for reference in re.findall(r'"\$ref":"(.*?)"', json.dumps(document, separators=(",", ":"))):
            place: Any = document
            for step in reference.removeprefix("#/").split("/"):
                place = place[step]
        assert {each["name"] for each in document["components"]["messages"].values()} == {
            *map(message_type, ALL_MESSAGES),
            "audio_frame",
        }
        for channel in ("text", "voice"):
            said = document["operations"][f"receive{channel.title()}"]["messages"]
            assert ({"$ref": "#/channels/voice/messages/AudioFrame"} in said) == (channel == "voice")

    asyncio.run(main())


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = TEXTS | st.integers(-5, 10**8) | st.booleans() | st.none() | st.sampled_from(["high", "low"])
NAMES = st.sampled_from(sorted(set().union(*map(names, CLIENT_MESSAGES)) | {"last_event", "call_id"}))
KINDS = st.sampled_from([*map(message_type, CLIENT_MESSAGES), "sing"])


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=4), KINDS)
def test_the_host_accepts_exactly_what_the_schemas_allow(fields: dict[str, Any], kind: str) -> None:
    message = {**fields, "type": kind}
    if isinstance(message.get("timeZone"), str):
        message["timeZone"] = "Europe/Berlin"  # A schema cannot tell which time zones exist.
    opening = kind in ("start", "resume")
    try:
        (parse_first_message if opening else parse_client_message)(json.dumps(message))
        taken = True
    except InvalidMessageError:
        taken = False
    try:
        check(message, by_host=False)
        published = True
    except AssertionError:
        published = False
    assert taken == published


def test_the_message_schemas_are_valid() -> None:
    for name in message_schemas():
        reference = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": message_schemas()}}
        jsonschema_rs.validator_for(reference)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("half \ud83d of a pair", "half ? of a pair"),
        (2**80, 2**80),
        (float("inf"), None),
        ({1: "one"}, {"1": "one"}),
        ({"deep": [{"er": "\udc00"}]}, {"deep": [{"er": "?"}]}),
        (Path("a/b"), "a/b"),
    ],
)
def test_values_that_json_cannot_represent_are_approximated(value: Any, read: Any) -> None:
    assert json.loads(encode({"value": value})) == {"value": read}
