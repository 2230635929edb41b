"""`tools/call`: runs a call in the client's session, under the same policies as a model's call."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from typing import Any, NamedTuple

import mcp_types as t
from jackfield.call_states import CallState, state_of
from jackfield.confirmation import PendingConfirmation, confirmation_token
from jackfield.contract.tool import ToolCall
from jackfield.ledger import IDEMPOTENCY_META, stable_key
from jackfield.orchestrator import CallResult
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield_sessions.hub import Listener
from jackfield_sessions.manager import SessionManager
from mcp.shared.exceptions import MCPError

from jackfield_mcp_server.call_events import forward_events
from jackfield_mcp_server.call_questions import CallQuestions
from jackfield_mcp_server.caller import Caller, Context
from jackfield_mcp_server.card import card_link
from jackfield_mcp_server.client_sessions import ClientSessions
from jackfield_mcp_server.elicitation import Elicitation, RequestState, UserDecision, given_answer
from jackfield_mcp_server.file_contents import FileContents
from jackfield_mcp_server.log_levels import LogLevels
from jackfield_mcp_server.question_rounds import QuestionRounds
from jackfield_mcp_server.results import Result, to_result
from jackfield_mcp_server.settings import McpSettings

TURN = "jackfield/turn"
"""The member of a call's `_meta` that groups calls into one turn."""

_KEY_PATTERN = re.compile(r"[\x21-\x7e]{1,200}")


class _Request(NamedTuple):
    """A call as the client sent it, in its session."""

    ctx: Context
    params: t.CallToolRequestParams
    caller: Caller
    session: Session
    call: ToolCall
    state: RequestState | None
    """The state that an earlier result asked the client to send back."""
    rounds: QuestionRounds
    may_be_known: bool
    """True if the call may have been made before: it has a key, or continues an earlier request."""


class McpCalls:
    """Runs the calls of MCP clients."""

    def __init__(
        self,
        sessions: SessionManager,
        client_sessions: ClientSessions,
        questions: CallQuestions,
        log_levels: LogLevels,
        settings: McpSettings,
    ) -> None:
        self._sessions = sessions
        self._runtime = sessions.runtime
        self._client_sessions = client_sessions
        self._elicitation = Elicitation(sessions, settings)
        self._questions = questions
        self._log_levels = log_levels
        self._public_url = settings.public_url
        self._files = FileContents(sessions.runtime.capabilities, settings)

    async def call(self, ctx: Context, params: t.CallToolRequestParams, caller: Caller) -> Result:
        """Run a call, or continue one that waited for the user's decision."""
        meta = params.meta or {}
        key, turn = _key(meta, IDEMPOTENCY_META), _key(meta, TURN)
        state = RequestState.decode(params.request_state) if params.request_state else None
        session = await self._client_sessions.open(caller)
        call_id = state.call_id if state else _call_id(key)
        if key is not None:
            session = await self._client_sessions.of_key(caller, session, call_id)
        self._questions.connect(session)
        call = ToolCall(params.name, _encode(params.arguments), call_id)
        rounds = QuestionRounds(self._questions, ctx, session, call_id, modern=caller.modern)
        may_be_known = key is not None or state is not None
        request = _Request(ctx, params, caller, session, call, state, rounds, may_be_known)
        try:
            if state is not None:
                await rounds.take_answers(state, params.input_responses)
            async with forward_events(ctx, call_id, self._log_levels.of_request(ctx)) as listen:
                answer = await rounds.attend(self._run(request, turn, listen), may_be_running=may_be_known)
                if isinstance(answer, CallResult) and _is_waiting(answer):
                    return await self._confirm(request, answer, listen)
        except asyncio.CancelledError:
            # A read stops; a write finishes, and its outcome is kept under its key.
            self._questions.cancel(session, call_id, may_run_elsewhere=may_be_known)
            raise
        return await self._result(request, answer)

    async def _run(self, request: _Request, turn: str | None, listen: Listener | None) -> CallResult:
        session, call = request.session, request.call
        again = False
        if request.may_be_known:
            status = await self._runtime.ledger.status(stable_key(session.id, call.call_id or ""))
            again = status.state is not CallState.NEVER_RUN
        return await self._sessions.direct_calls.run(session, call, again=again, group=turn, listen=listen)

    async def _confirm(self, request: _Request, answer: CallResult, listen: Listener | None) -> Result:
        """Ask the user to confirm a waiting call; return its outcome, the question, or a waiting result."""
        session, elicitation = request.session, self._elicitation
        pending = await self._runtime.confirmations.for_call(session.id, answer.key)
        if pending is None:
            return await self._result(request, answer)
        link = card_link(request.ctx.request, pending, self._public_url)
        channel = elicitation.channel(request.ctx, link)
        if channel is None:
            return self._waiting(request, answer, pending, link)
        if not request.caller.modern:
            given = await elicitation.ask(request.ctx, channel, pending, link)
        else:
            given = given_answer(request.params.input_responses) if request.state else None
            if given is None:
                return elicitation.input_required(channel, session, pending, link)
        decision = await elicitation.decision(channel, given, pending)
        if decision is UserDecision.OPEN:
            if request.caller.modern and given is not None and given.action == "accept":
                return elicitation.input_required(channel, session, pending, link)
            return self._waiting(request, answer, pending, link)
        work = self._carry_out(request, decision, pending, listen)
        may_be_running = decision is UserDecision.ELSEWHERE
        return await self._result(request, await request.rounds.attend(work, may_be_running=may_be_running))

    async def _carry_out(
        self, request: _Request, decision: UserDecision, pending: PendingConfirmation, listen: Listener | None
    ) -> CallResult:
        calls, session = self._sessions.direct_calls, request.session
        if decision is UserDecision.ELSEWHERE:
            return await calls.run(session, request.call, again=True, listen=listen)
        state = request.state
        token = state.token if state and state.token else confirmation_token(session, pending.id)
        approve = decision is UserDecision.APPROVED
        outcome = await calls.resolve_confirmation(session, token, approve=approve, listen=listen)
        if outcome is None:
            raise MCPError(t.INVALID_PARAMS, "The confirmation of this call is unknown; make a new call.")
        return outcome

    async def _result(self, request: _Request, answer: CallResult | Result) -> Result:
        if not isinstance(answer, CallResult):
            return answer
        tool = self._tool(request)
        result = to_result(answer, tool)
        missing = request.rounds.missing_capabilities
        if missing and result["isError"] and request.caller.modern:
            text = "The tool needs a capability that this client does not have."
            data = {"requiredCapabilities": missing, **result["_meta"]}
            raise MCPError(t.MISSING_REQUIRED_CLIENT_CAPABILITY, text, data)
        if tool is not None and not result["isError"]:
            data = result["structuredContent"]
            result["content"] += await self._files.of_result(tool.manifest, data, request.ctx.request)
        return result

    def _waiting(
        self, request: _Request, answer: CallResult, pending: PendingConfirmation, link: str | None
    ) -> Result:
        if link:
            how = f"Approve or decline it at {link}"
        elif request.ctx.request is None:
            how = (
                "This server cannot show the call to a person: set `public_url` in [endpoints.mcp] to the "
                "address of a host with the same store, then make the call again."
            )
        else:
            card = f"/mcp/confirmations/{pending.session_id}/{pending.id}"
            how = f"This host has no console: approve or decline it with `POST {card}`."
        note = f"A person has to approve this call: {pending.preview}\n{how}"
        return to_result(answer, self._tool(request), note)

    def _tool(self, request: _Request) -> RegisteredTool | None:
        return self._runtime.registry.catalog(request.session.toolset).get(request.call.tool_id)


def _is_waiting(answer: CallResult) -> bool:
    return state_of(answer.wire) is CallState.WAITING and bool(answer.key)


def _key(meta: Any, name: str) -> str | None:
    """Return an identifier in `_meta`, or None; raise `MCPError` if it is malformed."""
    given = meta.get(name)
    if given is not None and not (isinstance(given, str) and _KEY_PATTERN.fullmatch(given)):
        raise MCPError(t.INVALID_PARAMS, f"`_meta` {name} must be 1 to 200 visible ASCII characters.")
    return given


def _call_id(key: str | None) -> str:
    if key is None:
        return f"mcp-{os.urandom(12).hex()}"
    return f"key-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def _encode(arguments: dict[str, Any] | None) -> bytes:
    """Return the arguments as JSON; the kernel parses and validates them like a model's arguments."""
    try:
        return json.dumps(arguments or {}, allow_nan=False).encode()
    except ValueError:
        raise MCPError(
            t.INVALID_PARAMS, "The arguments are not JSON: NaN and Infinity are not numbers."
        ) from None
    except RecursionError:
        raise MCPError(t.INVALID_PARAMS, "The arguments are nested too deeply.") from None
