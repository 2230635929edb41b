"""Asks the user of an MCP client to confirm a call.

A model cannot confirm a call. In URL mode, the client only opens the call's card, and the user decides there.
In form mode, the client shows the question itself, so this mode is used only with clients that the deployment
trusts. Other clients get the address of the card as a result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, NamedTuple

import mcp_types as t
import orjson
from jackfield.call_states import CallState
from jackfield.confirmation import PendingConfirmation, confirmation_token
from jackfield.session.session import Session
from jackfield_sessions.manager import SessionManager
from mcp.shared.exceptions import MCPError

from jackfield_mcp_server.caller import Context
from jackfield_mcp_server.settings import McpSettings

QUESTION = "confirm"
"""The name of the question among the input requests of a call."""

APPROVE = "approve"
"""The member of a form's answer that contains the decision."""

POLL_SECONDS = 0.25
"""How often the store is asked whether the user has decided."""

Channel = Literal["url", "form"]


class UserDecision(Enum):
    """The user's decision."""

    APPROVED = "approved"
    DECLINED = "declined"
    ELSEWHERE = "elsewhere"
    """The decision was made on the card; the outcome is in the store."""
    OPEN = "open"
    """There is no decision yet."""


class RequestState(NamedTuple):
    """The state that a client sends back with its answer; the server seals it."""

    call_id: str
    token: str = ""
    """The token of the confirmation, which is redeemed once."""
    questions: tuple[str, ...] = ()
    """The ids of the tool's questions, in the order of the input requests."""

    def encode(self) -> str:
        """Return the state as text."""
        return orjson.dumps([*self]).decode()

    @classmethod
    def decode(cls, text: str) -> RequestState:
        """Read what `encode` returned; the seal guarantees that nobody changed it."""
        call_id, token, questions = orjson.loads(text)
        return cls(call_id, token, tuple(questions))


class Elicitation:
    """Asks for confirmations in the way that a client supports."""

    def __init__(self, sessions: SessionManager, settings: McpSettings) -> None:
        self._runtime = sessions.runtime
        self._stopping = sessions.stopping
        self._settings = settings

    def channel(self, ctx: Context, link: str | None) -> Channel | None:
        """Return how the client can ask the user; None if it cannot."""
        capabilities = ctx.session.client_capabilities
        declared = capabilities.elicitation if capabilities is not None else None
        if declared is None:
            return None
        if declared.url is not None and link is not None:
            return "url"
        # A client that declares no mode supports forms.
        supports_form = declared.form is not None or declared.url is None
        return "form" if supports_form and self._settings.trust_clients else None

    def input_required(
        self, channel: Channel, session: Session, pending: PendingConfirmation, link: str | None
    ) -> dict[str, Any]:
        """Return the question as the result of a call, for clients that repeat the call with an answer."""
        state = RequestState(pending.call_id or "", confirmation_token(session, pending.id))
        request = {"method": "elicitation/create", "params": _params(channel, pending, link)}
        return {
            "resultType": "input_required",
            "inputRequests": {QUESTION: request},
            "requestState": state.encode(),
        }

    async def ask(
        self, ctx: Context, channel: Channel, pending: PendingConfirmation, link: str | None
    ) -> t.ElicitResult | None:
        """Send the question to a client that waits for the call; None if it gives no answer in time."""
        asking = asyncio.ensure_future(_ask(ctx, channel, pending, link))
        stopping = asyncio.ensure_future(self._stopping.wait())
        seconds = max(0.0, pending.expires_at - self._runtime.store.now())
        try:
            await asyncio.wait({asking, stopping}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        except (MCPError, ValueError):
            # The client cannot ask, or its answer is invalid; the user can still decide on the card.
            return None
        finally:
            asking.cancel()
            stopping.cancel()

    async def decision(
        self, channel: Channel, answer: t.ElicitResult | None, pending: PendingConfirmation
    ) -> UserDecision:
        """Return the decision that an answer contains; in URL mode, wait for the decision on the card."""
        if answer is None or answer.action == "cancel":
            return UserDecision.OPEN
        if answer.action == "decline":
            return UserDecision.DECLINED
        if channel == "form":
            approved = answer.content is not None and answer.content.get(APPROVE) is True
            return UserDecision.APPROVED if approved else UserDecision.DECLINED
        return UserDecision.ELSEWHERE if await self._decided(pending) else UserDecision.OPEN

    async def _decided(self, pending: PendingConfirmation) -> bool:
        """Wait until the user has decided on the card, on any host; False if it takes too long."""
        deadline = asyncio.get_running_loop().time() + self._settings.wait_seconds
        while (await self._runtime.ledger.status_of(pending)).state is CallState.WAITING:
            if asyncio.get_running_loop().time() >= deadline or self._stopping.is_set():
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True


async def _ask(
    ctx: Context, channel: Channel, pending: PendingConfirmation, link: str | None
) -> t.ElicitResult:
    if channel == "url" and link is not None:
        return await ctx.session.elicit_url(pending.preview, link, pending.id, ctx.request_id)
    return await ctx.session.elicit_form(pending.preview, _SCHEMA, ctx.request_id)


def given_answer(responses: Mapping[str, Any] | None) -> t.ElicitResult | None:
    """Return the answer in a repeated call; None if there is none."""
    answer = (responses or {}).get(QUESTION)
    return answer if isinstance(answer, t.ElicitResult) else None


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        APPROVE: {
            "type": "boolean",
            "title": "Approve",
            "description": "Approve the call. It runs once, with exactly these arguments.",
            "default": False,
        }
    },
    "required": [APPROVE],
}


def _params(channel: Channel, pending: PendingConfirmation, link: str | None) -> dict[str, Any]:
    if channel == "url":
        return {"mode": "url", "message": pending.preview, "url": link}
    return {"mode": "form", "message": pending.preview, "requestedSchema": _SCHEMA}
