"""Calls that wait for their user's decision: cards, and tokens that only the client holds.

The model never sees a token, so it cannot confirm for the user. A token is derived from the session's own
secret: a client that reconnects gets the same one, and a reader of the store cannot make one. The record of
a waiting call binds its token to the session, the user, the tool and the exact arguments.

The record says what was asked, never what was decided. The decision is the claim of the run, under
`PendingConfirmation.run_key`: approving runs the call under that claim, declining and expiry record an
outcome there without running anything, and of any number of decisions the first one counts.
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
"""How the keys of approved calls begin."""

_IS_ID = re.compile(r"[0-9a-f]{32}")


class PendingConfirmation(NamedTuple):
    """What was asked of a user: one call with its exact arguments."""

    id: str
    session_id: str
    user: str | None
    tool_id: str
    args: dict[str, Any]
    call_id: str | None
    key: str
    """The idempotency key of the call that asked, or nothing when it had none."""
    preview: str
    expires_at: float
    token_hash: str
    meta: Mapping[str, Any]
    """The `meta` of an envelope for a call that was never run."""

    @property
    def run_key(self) -> str:
        """The claim under which the call runs once it is approved; it decides what became of it."""
        return f"{APPROVED}{self.session_id}/{self.id}"

    @property
    def fingerprint(self) -> bytes:
        """The fingerprint of that claim; the record fixes the arguments, so the key says it all."""
        return hashlib.sha256(self.run_key.encode()).digest()

    @property
    def known_until(self) -> float:
        """How long this question is known at least; its claims have to be remembered for as long."""
        return self.expires_at + 2 * RECOVERY_SECONDS

    @property
    def request(self) -> dict[str, Any]:
        """What the model is told about the question."""
        return {"tool": self.tool_id, "preview": self.preview, "expires_at": self.expires_at}

    def unrun(self, response: ToolResponse) -> bytes:
        """The envelope of an outcome for which nothing was run."""
        return orjson.dumps(response.with_meta(**self.meta).to_wire())

    def event(self, session: Session) -> ConfirmationRequired:
        """What the client gets: the question, and the token to answer it with."""
        return ConfirmationRequired(
            confirmation=self.id,
            tool=self.tool_id,
            call_id=self.call_id,
            preview=self.preview,
            args=self.args,
            expires_at=self.expires_at,
            token=confirmation_token(session, self.id),
        )


def confirmation_token(session: Session, confirmation_id: str) -> str:
    """The token of a confirmation; only the session's client and this session can know it."""
    return f"{confirmation_id}.{session.derive(f'confirmation/{confirmation_id}')}"


def confirmation_id(key: str) -> str:
    """The id of the confirmation of a call: the same whenever the call is repeated."""
    return hashlib.sha256(key.encode()).hexdigest()[:32] if key else secrets.token_hex(16)


def unrun_meta(tool: RegisteredTool) -> dict[str, Any]:
    """The `meta` of an envelope about a call that was not run."""
    return {
        "toolId": tool.id,
        "toolVersion": tool.manifest.version,
        "registryVersion": tool.registry_version,
        "responseSchemaVersion": RESPONSE_SCHEMA_VERSION,
        "duration": 0.0,
    }


def waiting(pending: PendingConfirmation) -> ToolResponse:
    """The answer to a call whose user has not decided yet."""
    failure = Failure(
        ErrorType.CONFIRMATION_REQUIRED,
        "Pending, not done: the user has been asked and has not answered yet.",
        suggestion="Say what waits for the user's approval. It is not done; do not call again.",
        confirmation_request=pending.request,
    )
    return ToolResponse(failure=failure, meta={"state": "waiting"})


class Confirmations:
    """Asks users, and finds what they were asked."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def ask(self, call: Call, *, seconds: float) -> PendingConfirmation:
        """Let a call wait: keep what is asked, and give the client the card with the token.

        A call that was asked about before, by a process that died meanwhile, keeps its card and its expiry.
        """
        pending = await self.of_key(call.session.id, call.key) if call.key else None
        if pending is None:
            pending = self._pending(call, seconds)
            await self.keep(pending, pending.known_until - self._store.now())
        call.session.publish(*event_fields(pending.event(call.session)))
        return pending

    async def keep(self, pending: PendingConfirmation, seconds: float) -> None:
        """Keep the record of a question for this long from now."""
        record = orjson.dumps(pending._asdict())
        await self._store.put(_record(pending.session_id, pending.id), record, ttl=seconds)

    async def find(self, session: Session, token: str) -> PendingConfirmation | None:
        """What a token stands for; nothing when it is unknown or belongs to another session or user."""
        named = token.partition(".")[0]
        # A token is untrusted text, and a part of it becomes a part of a key.
        pending = await self._read(session.id, named) if _IS_ID.fullmatch(named) else None
        if pending is None or pending.user != session.user:
            return None
        return pending if hmac.compare_digest(pending.token_hash, _hash(token)) else None

    async def of_key(self, session_id: str, key: str) -> PendingConfirmation | None:
        """What the user was asked about a call."""
        return await self._read(session_id, confirmation_id(key))

    async def of_run(self, run_key: str) -> PendingConfirmation | None:
        """What the user was asked about an approved call."""
        session_id, _, named = run_key.removeprefix(APPROVED).rpartition("/")
        return await self._read(session_id, named)

    async def of_session(self, session_id: str) -> list[PendingConfirmation]:
        """Everything the user of a session was asked, decided or not."""
        keys = await self._store.keys(_record(session_id, ""))
        found = [await self._read(session_id, key.rpartition("/")[2]) for key in keys]
        return [pending for pending in found if pending is not None]

    async def _read(self, session_id: str, confirmation_id: str) -> PendingConfirmation | None:
        kept = await self._store.get(_record(session_id, confirmation_id))
        return None if kept is None else PendingConfirmation(**orjson.loads(kept))

    def _pending(self, call: Call, seconds: float) -> PendingConfirmation:
        tool, session = call.tool, call.session
        card = render(tool.manifest.preview, tool.id, call.args)
        named = confirmation_id(call.key)
        return PendingConfirmation(
            id=named,
            session_id=session.id,
            user=session.user,
            tool_id=tool.id,
            args=call.args,
            call_id=call.call_id,
            key=call.key,
            preview="\n".join([card, *call.preview_notes]),
            expires_at=self._store.now() + seconds,
            token_hash=_hash(confirmation_token(session, named)),
            meta=unrun_meta(tool),
        )


def _record(session_id: str, confirmation_id: str) -> str:
    return f"confirmation/{session_id}/{confirmation_id}"


def _hash(token: str) -> str:
    # A reader of the store must not be able to confirm for the user.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def render(template: str | None, tool_id: str, args: Mapping[str, Any]) -> str:
    """The text of a confirmation card; without a template, the tool and its arguments."""
    if template is None:
        return visible(f"{tool_id} {orjson.dumps(args).decode()}")
    parts = []
    for literal, name, form, _ in Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            parts.append(visible(_filled(args, name, form or "")))
    return "".join(parts)


def _filled(args: Mapping[str, Any], path: str, form: str) -> str:
    value = _argument(args, path)
    kind, _, other = form.partition(" ")
    if kind == "moment":
        return _moment(value, None)
    if kind == "in":
        return _moment(value, _argument(args, other))
    if kind == "until":
        return _length(value, _argument(args, other))
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _argument(args: Mapping[str, Any], path: str) -> Any:
    value: Any = args
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _moment(value: Any, zone: Any) -> str:
    moment = _parsed(value)
    if moment is None:
        return str(value)
    if zone is None:
        offset, shown = f"{moment:%z}", _in_words(moment)
        return f"{shown} (UTC{offset[:3]}:{offset[3:5]})" if offset else shown
    from zoneinfo import ZoneInfo

    try:
        local = moment.astimezone(ZoneInfo(str(zone)))
    except (KeyError, ValueError, OSError, OverflowError):  # The handler will say what is wrong with it.
        return f"{value} ({zone})"
    return f"{_in_words(local)} {local:%Z} ({zone})"


def _in_words(moment: datetime) -> str:
    return f"{moment:%A}, {moment.day} {moment:%B %Y, %H:%M}"


def _length(start: Any, end: Any) -> str:
    began, ended = _parsed(start), _parsed(end)
    if began is None or ended is None or (began.tzinfo is None) != (ended.tzinfo is None):
        return f"{start} to {end}"
    minutes = round((ended - began).total_seconds() / 60)
    if minutes < 0:
        return "none: it ends before it begins"
    days, rest = divmod(minutes, 24 * 60)
    parts = ((days, "d"), (rest // 60, "h"), (rest % 60, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 min"


def _parsed(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None


def visible(text: str) -> str:
    """A model's text with what a terminal or a page would obey instead of show written out.

    New lines too: a title with lines of its own could write what looks like the rest of the card.
    """
    return "".join(each if each.isprintable() else _written_out(each) for each in text)


def _written_out(character: str) -> str:
    return "\\n" if character == "\n" else f"\\u{ord(character):04x}"
