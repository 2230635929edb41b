"""Single requests for tools that do not run: the tool, the arguments, questions, wrong writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield import Mode
from jackfield.transport.events import FormRequest
from jackfield.transport.protocol import ConnectionConfig
from jackfield_local.agent.agent import LocalAgent

from bench.agent.criteria import differing, exact
from bench.agent.dataset import Request
from bench.agent.scores import Row, Score
from bench.agent.sessions import Turn, schema_of, session, third_party_opening


async def third_party(agent: LocalAgent, requests: Sequence[Request], mode: Mode, *, shown: bool) -> Row:
    """Score requests for third-party tools, each in its own session; text gets forms, voice questions."""
    score = Score(shown=shown)
    opening = third_party_opening(mode, forms=mode == "text")
    for request in requests:
        async with session(agent, opening) as talk:
            turn = await talk.says(request.says)
        _judge(request, turn, opening, score)
    return score.row()


def _judge(request: Request, turn: Turn, opening: ConnectionConfig, score: Score) -> None:
    score.count("requests")
    score.measure("seconds", turn.seconds)
    right = turn.tool == request.tool
    score.share("tool", right=right)
    expected: object = request.args
    note = ""
    if request.tool is None:
        expected = "nothing"
    elif request.asks:
        right = _asks(request, turn)
        score.share("asked", right=right)
        expected = f"{request.tool}: ask for {' or '.join(request.asks)}"
    else:
        call = turn.calls[0] if turn.calls and turn.calls[0].tool == request.tool else None
        right = call is not None and exact(call.args, request.args, schema_of(request.tool))
        score.share("made", right=call is not None)
        score.share("exact", right=right)
        form = turn.form if turn.form is not None and turn.form.tool_id == request.tool else None
        filled = form is not None and exact(form.values, request.args, schema_of(request.tool))
        score.share("offered", right=right or filled)
        note = "RIGHT VALUES, " * filled
        expected = f"{request.tool}({request.args})"
    writes = sum(_is_wrong_write(request, each.tool, each.args, opening) for each in turn.calls)
    score.count("wrong writes", writes)
    score.count("wrong forms", int(turn.form is not None and _has_wrong_value(request, turn.form)))
    if not right:
        score.failed(request.says, expected, f"{note or 'WRONG WRITE ' * bool(writes)}{turn}")


def _asks(request: Request, turn: Turn) -> bool:
    """Return whether the agent asks for a missing parameter, by a question or an empty form field."""
    if turn.calls or turn.tool != request.tool:
        return False
    if turn.form is not None:
        return not set(request.asks) <= turn.form.values.keys()
    return turn.question is not None and turn.question.parameter in request.asks


def _is_wrong_write(request: Request, tool: str, args: Mapping[str, Any], opening: ConnectionConfig) -> bool:
    if tool not in opening.writers:
        return False
    return bool(request.asks) or tool != request.tool or not exact(args, request.args, schema_of(tool))


def _has_wrong_value(request: Request, form: FormRequest) -> bool:
    """Return whether a form has an invented value; requests with missing values do not label the others."""
    if request.asks or form.tool_id != request.tool:
        return False
    return bool(differing(form.values, request.args, schema_of(form.tool_id)))


async def public(
    agent: LocalAgent,
    rows: Sequence[Mapping[str, Any]],
    openings: Mapping[Mode, ConnectionConfig],
    *,
    shown: bool,
) -> Row:
    """Score requests with only the tool labelled; a harmless lookup is right where the label allows it."""
    score = Score(shown=shown)
    for row in rows:
        # Only voice has a tool for a goodbye; everything else is asked in text.
        opening = openings["voice" if "end_voice_session" in row["tools"] else "text"]
        async with session(agent, opening) as talk:
            turn = await talk.says(row["says"])
        allowed = [*row["tools"], *row.get("also", ())]
        right = turn.tool in allowed if turn.tool else not row["tools"]
        writes = sum(each.tool in opening.writers and each.tool not in allowed for each in turn.calls)
        score.count("requests")
        score.measure("seconds", turn.seconds)
        score.share("tool", right=right)
        score.count("wrong writes", writes)
        if not right:
            expected = " or ".join(allowed) or "nothing"
            score.failed(row["says"], expected, f"{'WRONG WRITE ' * bool(writes)}{turn}")
    return score.row()
