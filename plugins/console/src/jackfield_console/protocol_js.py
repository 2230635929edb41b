"""Writes `static/js/protocol.js` from `jackfield.protocol`: `nox -s protocol_js`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jackfield.protocol import PROTOCOL
from jackfield.protocol.close_codes import CLOSE_REASONS
from jackfield.protocol.codec import Message, members, message_type
from jackfield.protocol.messages import (
    CLIENT_MESSAGES,
    HOST_MESSAGES,
    MAX_CONTEXT_LENGTH,
    MAX_TEXT_LENGTH,
    camel_case,
)

FILE = Path(__file__).parent / "static" / "js" / "protocol.js"

_HEAD = """\
// The WebSocket protocol: message types with their members, close codes and limits.
// Generated from jackfield.protocol by `nox -s protocol_js`; do not edit.
"""


def protocol_js() -> str:
    """Return the text of the module."""
    return "\n".join(
        [
            _HEAD,
            f"export const PROTOCOL = {json.dumps(PROTOCOL)};",
            f"export const MAX_TEXT_LENGTH = {MAX_TEXT_LENGTH};",
            f"export const MAX_CONTEXT_LENGTH = {MAX_CONTEXT_LENGTH};",
            "",
            "/** The members of each message from the client, besides `type`. */",
            _object("CLIENT_MESSAGES", _members(CLIENT_MESSAGES)),
            "",
            "/** The members of each message from the host, besides `type`. */",
            _object("HOST_MESSAGES", _members(HOST_MESSAGES)),
            "",
            "/** Why the host closes the WebSocket. */",
            _object("CLOSE_CODES", {camel_case(each.name): each.code for each in CLOSE_REASONS}),
            "",
        ]
    )


def _members(kinds: Iterable[type[Message]]) -> dict[str, list[str]]:
    return {
        message_type(kind): [member.wire for member in members(kind) if member.name != "type"]
        for kind in kinds
    }


def _object(name: str, values: Mapping[str, Any]) -> str:
    lines = "".join(f"  {key}: {json.dumps(value)},\n" for key, value in values.items())
    return f"export const {name} = {{\n{lines}}};"


if __name__ == "__main__":
    FILE.write_text(protocol_js(), "utf-8")
