"""Pending confirmations: the records, tokens and previews of calls that wait for the user's decision.

The model never sees a token, so it cannot confirm for the user. A token is derived from the session's
secret: a client that reconnects gets the same token, and a reader of the store cannot create one. The record
of a pending call binds the token to the session, the user, the tool and the exact arguments.

The record holds the request, not the decision. The decision is recorded as the claim of the run, under
`PendingConfirmation.run_key`: an approval runs the call under that claim; a refusal or an expiry records an
outcome there without running anything. The first decision wins.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from string import Formatter
from typing import Any, NamedTuple

import orjson

from jackfield.contract.tool import RESPONSE_SCHEMA_VERSION, ErrorType, Failure, ToolResponse
from jackfield.governance import Call
from jackfield.protocol.codec import event_fields
from jackfield.protocol.messages import ConfirmationRequired
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import RECOVERY_SECONDS, Session
from jackfield.store import Store

APPROVED = "approved/"
"""The key prefix of approved calls."""

_IS_ID = re.compile(r"[0-9a-f]{32}")


class PendingConfirmation(NamedTuple):
    """A request to the user to confirm one call with its exact arguments."""

    id: str
    session_id: str
    user: str | None
    tool_id: str
    args: dict[str, Any]
    call_id: str | None
    key: str
    """The idempotency key of the call; empty if it had none."""
    preview: str
    expires_at: float
    token_hash: str
    meta: Mapping[str, Any]
    """The `meta` of an envelope for a call that was not run."""

    @property
    def run_key(self) -> str:
        """The key of the claim under which the approved call runs; the claim holds the outcome."""
        return f"{APPROVED}{self.session_id}/{self.id}"

    @property
    def fingerprint(self) -> bytes:
        """The fingerprint of the run's claim: a hash of its key, because the record fixes the arguments."""
        return hashlib.sha256(self.run_key.encode()).digest()

    @property
    def kept_until(self) -> float:
        """The earliest time at which this record and its claims may be deleted."""
        return self.expires_at + 2 * RECOVERY_SECONDS

    @property
    def request(self) -> dict[str, Any]:
        """The part of the request that the model sees."""
        return {"tool": self.tool_id, "preview": self.preview, "expires_at": self.expires_at}

    def seal_not_run(self, response: ToolResponse) -> bytes:
        """Return a response as the envelope of this call, which was not run."""
        return orjson.dumps(response.with_meta(**self.meta).to_wire())

    def event(self, session: Session) -> ConfirmationRequired:
        """Return the event for the client: the request, and the token with which the client answers it."""
        return ConfirmationRequired(
            confirmation=self.id,
            tool=self.tool_id,
            call_id=self.call_id,
            preview=self.preview,
            args=self.args,
            expires_at=self.expires_at,
            token=confirmation_token(session, self.id),
        )


class Confirmations:
    """Creates and finds the records of pending confirmations."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def request(self, call: Call, *, seconds: float) -> PendingConfirmation:
        """Request the user's confirmation: save the record, and send the preview and the token to the client.

        If another process requested confirmation of the same call and then died, the preview and expiry of
        that request stay valid.
        """
        pending = await self.for_call(call.session.id, call.key) if call.key else None
        if pending is None:
            pending = self._pending(call, seconds)
            await self.save(pending, pending.kept_until - self._store.now())
        call.session.publish(*event_fields(pending.event(call.session)))
        return pending

    async def save(self, pending: PendingConfirmation, seconds: float) -> None:
        """Save a record for this many seconds from now."""
        record = orjson.dumps(pending._asdict())
        await self._store.put(_record_key(pending.session_id, pending.id), record, ttl=seconds)

    async def find(self, session: Session, token: str) -> PendingConfirmation | None:
        """Return a token's record; None if the token is unknown or belongs to another session or user."""
        found_id = token.partition(".")[0]
        # A token is untrusted text, and part of it becomes part of a key.
        pending = await self._read(session.id, found_id) if _IS_ID.fullmatch(found_id) else None
        if pending is None or pending.user != session.user:
            return None
        return pending if hmac.compare_digest(pending.token_hash, _hash(token)) else None

    async def for_call(self, session_id: str, key: str) -> PendingConfirmation | None:
        """Return the record for a call's idempotency key."""
        return await self._read(session_id, confirmation_id(key))

    async def for_run(self, run_key: str) -> PendingConfirmation | None:
        """Return the record for the run key of an approved call."""
        session_id, _, found_id = run_key.removeprefix(APPROVED).rpartition("/")
        return await self._read(session_id, found_id)

    async def for_session(self, session_id: str) -> list[PendingConfirmation]:
        """Return all records of a session, whether the user has decided or not."""
        keys = await self._store.keys(_record_key(session_id, ""))
        found = [await self._read(session_id, key.rpartition("/")[2]) for key in keys]
        return [pending for pending in found if pending is not None]

    async def renew_tokens(self, session: Session) -> None:
        """Make all records of a session accept the tokens that are derived from its new secret."""
        for pending in await self.for_session(session.id):
            token_hash = _hash(confirmation_token(session, pending.id))
            await self.save(pending._replace(token_hash=token_hash), pending.kept_until - self._store.now())

    async def _read(self, session_id: str, confirmation_id: str) -> PendingConfirmation | None:
        """Read the record of a confirmation."""
        record = await self._store.get(_record_key(session_id, confirmation_id))
        return None if record is None else PendingConfirmation(**orjson.loads(record))

    def _pending(self, call: Call, seconds: float) -> PendingConfirmation:
        """Return the confirmation request for a call: preview, expiry and the hash of its token."""
        tool, session = call.tool, call.session
        preview = render(tool.manifest.preview, tool.id, call.args)
        new_id = confirmation_id(call.key)
        return PendingConfirmation(
            id=new_id,
            session_id=session.id,
            user=session.user,
            tool_id=tool.id,
            args=call.args,
            call_id=call.call_id,
            key=call.key,
            preview="\n".join([preview, *call.preview_notes]),
            expires_at=self._store.now() + seconds,
            token_hash=_hash(confirmation_token(session, new_id)),
            meta=not_run_meta(tool),
        )


def confirmation_token(session: Session, confirmation_id: str) -> str:
    """Return the token of a confirmation; only the session and its client know it."""
    return f"{confirmation_id}.{session.derive(f'confirmation/{confirmation_id}')}"


def confirmation_id(key: str) -> str:
    """Return the id of a call's confirmation; it is the same if the call is repeated."""
    return hashlib.sha256(key.encode()).hexdigest()[:32] if key else secrets.token_hex(16)


def not_run_meta(tool: RegisteredTool) -> dict[str, Any]:
    """Return the `meta` of an envelope for a call that was not run."""
    return {
        "toolId": tool.id,
        "toolVersion": tool.manifest.version,
        "registryVersion": tool.registry_version,
        "responseSchemaVersion": RESPONSE_SCHEMA_VERSION,
        "duration": 0.0,
    }


def confirmation_pending(pending: PendingConfirmation) -> ToolResponse:
    """Return the response to a call that the user has not decided on yet."""
    failure = Failure(
        ErrorType.CONFIRMATION_REQUIRED,
        "Not run yet: the call waits for the user's approval.",
        suggestion="Tell the user what needs their approval. Nothing has been done; do not call again.",
        confirmation_request=pending.request,
    )
    return ToolResponse(failure=failure, meta={"state": "waiting"})


def _record_key(session_id: str, confirmation_id: str) -> str:
    """Return the key of a confirmation's record."""
    return f"confirmation/{session_id}/{confirmation_id}"


def _hash(token: str) -> str:
    """Return the hash under which a token is stored."""
    # A reader of the store must not be able to confirm for the user.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def render(template: str | None, tool_id: str, args: Mapping[str, Any]) -> str:
    """Return the preview of a call; without a template, the tool and its arguments."""
    if template is None:
        return escape_unprintable(f"{tool_id} {orjson.dumps(args).decode()}")
    parts = []
    for literal, name, form, _ in Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            parts.append(escape_unprintable(_format(args, name, form or "")))
    return "".join(parts)


def _format(args: Mapping[str, Any], path: str, form: str) -> str:
    """Return an argument as the text that replaces a placeholder in a preview."""
    value = _argument(args, path)
    kind, _, other = form.partition(" ")
    if kind == "moment":
        return _format_datetime(value, None)
    if kind == "in":
        return _format_datetime(value, _argument(args, other))
    if kind == "until":
        return _format_duration(value, _argument(args, other))
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _argument(args: Mapping[str, Any], path: str) -> Any:
    """Return the argument at a dotted path; None if there is none."""
    value: Any = args
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _format_datetime(value: Any, zone: Any) -> str:
    parsed = _parse_datetime(value)
    if parsed is None:
        return str(value)
    if zone is None:
        offset, shown = f"{parsed:%z}", _long_form(parsed)
        return f"{shown} (UTC{offset[:3]}:{offset[3:5]})" if offset else shown
    from zoneinfo import ZoneInfo

    try:
        local = parsed.astimezone(ZoneInfo(str(zone)))
    except (KeyError, ValueError, OSError, OverflowError):  # The handler reports the invalid argument.
        return f"{value} ({zone})"
    return f"{_long_form(local)} {local:%Z} ({zone})"


def _long_form(time: datetime) -> str:
    return f"{time:%A}, {time.day} {time:%B %Y, %H:%M}"


def _format_duration(start: Any, end: Any) -> str:
    first, last = _parse_datetime(start), _parse_datetime(end)
    if first is None or last is None or (first.tzinfo is None) != (last.tzinfo is None):
        return f"{start} to {end}"
    minutes = round((last - first).total_seconds() / 60)
    if minutes < 0:
        return "none: the end is before the start"
    days, rest = divmod(minutes, 24 * 60)
    parts = ((days, "d"), (rest // 60, "h"), (rest % 60, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 min"


def _parse_datetime(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None


def escape_unprintable(text: str) -> str:
    """Escape the characters of a model's text that a terminal or page would interpret.

    Newlines are escaped too: a title with several lines could imitate the rest of the preview.
    """
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    return "\\n" if character == "\n" else f"\\u{ord(character):04x}"
