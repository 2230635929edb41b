"""The console's JavaScript uses only types, members and close codes that the protocol defines.

The browser tests check this too while the page runs; these tests read the scripts and need no browser.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jackfield.protocol.close_codes import CLOSE_REASONS
from jackfield.protocol.codec import Message, members, message_type
from jackfield.protocol.messages import CLIENT_MESSAGES, HOST_MESSAGES, camel_case
from jackfield_console.protocol_js import FILE, protocol_js

SCRIPTS = sorted(path for path in FILE.parent.rglob("*.js") if path != FILE)

CLIENT = {message_type(kind): kind for kind in CLIENT_MESSAGES}
HOST = {message_type(kind): kind for kind in HOST_MESSAGES}

MESSAGE_MODULES = (
    "session-socket.js",
    "conversation-view.js",
    "views/chat.js",
    "voice/voice-call.js",
    "parts/tool-card.js",
)
"""The modules in which `message` and `event` are messages from the host."""


def names(kind: type[Message]) -> set[str]:
    return {member.wire for member in members(kind)}


def code(path: Path) -> str:
    """A script without its comments and imports."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
    return re.sub(r"^\s*(//|import )[^\n]*", "", text, flags=re.MULTILINE)


def test_the_generated_module_is_up_to_date() -> None:
    assert FILE.read_text("utf-8") == protocol_js(), "run `nox -s protocol_js`"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_send_only_messages_of_the_protocol(path: Path) -> None:
    for kind, given in re.findall(r"(?:send|#deliver)\(\{ type: \"(\w+)\"([^}]*)\}", code(path)):
        assert kind in CLIENT, f"{path.name} sends {kind}"
        sent = set(re.findall(r"[,{]\s*(\w+)(?=\s*[:,}]|\s*$)", given.rstrip()))
        assert sent <= names(CLIENT[kind]), f"{path.name} sends {kind} with {sent - names(CLIENT[kind])}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_compare_only_message_types_of_the_host(path: Path) -> None:
    text = code(path)
    compared = set(re.findall(r"\b(?:message|event|detail)\.type === \"(\w+)\"", text))
    for listed in re.findall(r"\[([^\]]*)\]\.includes\((?:message|event|detail)\.type\)", text):
        compared |= set(re.findall(r"\"(\w+)\"", listed))
    assert compared <= set(HOST), compared - set(HOST)


@pytest.mark.parametrize("name", MESSAGE_MODULES)
def test_scripts_read_only_members_of_the_protocol(name: str) -> None:
    known = {member for kind in HOST_MESSAGES for member in names(kind)}
    read = set(re.findall(r"\b(?:message|event)\.(\w+)", code(FILE.parent / name)))
    assert read <= known, read - known


def test_handlers_of_the_conversation_use_members_of_their_message() -> None:
    table = re.search(r"#handlers = \{\n(.*?)\n  \};", code(FILE.parent / "conversation-view.js"), re.DOTALL)
    assert table
    handlers = re.findall(r"^    (\w+): \((\{[^}]*\}|\w*)", table[1], re.MULTILINE)
    assert {kind for kind, _ in handlers} <= set(HOST)
    assert len(handlers) >= 15
    for kind, given in handlers:
        taken = set(re.findall(r"\w+", given)) if given.startswith("{") else set()
        assert taken <= names(HOST[kind]), f"{kind}: {taken - names(HOST[kind])}"


def test_scripts_use_only_close_codes_of_the_protocol() -> None:
    used = {name for path in SCRIPTS for name in re.findall(r"\bCLOSE_CODES\.(\w+)", code(path))}
    assert used
    assert used <= {camel_case(each.name) for each in CLOSE_REASONS}
