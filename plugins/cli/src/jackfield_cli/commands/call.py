"""`jackfield call`: runs a tool from the shell, with all policies applied, and prints the result."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import as_json, with_registry
from jackfield_cli.terminal import echo, interruptible, print_json, printable

if TYPE_CHECKING:
    from jackfield.contract.context import Mode
    from jackfield.governance import Call
    from jackfield.orchestrator import CallResult
    from jackfield.runtime import Runtime
    from jackfield.session.session import Session
    from jackfield.settings import Settings


MAX_NAME_LENGTH = 200

# The result and the decisions of the policies are printed separately.
_RESULT_EVENTS = frozenset({"tool_complete", "tool_decisions", "tool_error"})

_PRINTED_AT_ONCE = ("confirmation_required", "tool_progress")
"""Events that the user has already seen when the result is printed."""


def _check_text(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Check that an option can be stored, because text from a shell may not be UTF-8."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise click.BadParameter("it is not UTF-8") from None
    if option.name != "said" and value == "":
        raise click.BadParameter("it is empty; omit the option instead")
    if option.name != "said" and value and len(value) > MAX_NAME_LENGTH:
        raise click.BadParameter(f"it has {len(value)} characters; the maximum is {MAX_NAME_LENGTH}")
    return value


@click.command()
@click.argument("tool")
@click.argument("arguments", default="{}")
@click.option(
    "--mode", type=click.Choice(["text", "voice"]), help="The mode of a new session (default: text)."
)
@click.option(
    "--session",
    "session_id",
    metavar="ID",
    callback=_check_text,
    help="Continue this session, or start one with this id.",
)
@click.option("--user", metavar="NAME", callback=_check_text, help="The user of a new session.")
@click.option(
    "--said",
    metavar="TEXT",
    default="",
    callback=_check_text,
    help="What the user said in this turn; policies may check it.",
)
@click.option(
    "--call-id",
    metavar="ID",
    callback=_check_text,
    help="The provider's id for the call; if the id has at least 9 characters, the call runs only once per "
    "session.",
)
@click.option(
    "--turn",
    metavar="NAME",
    callback=_check_text,
    help="Add this call to turn NAME of the session; the calls of a turn share one budget. "
    "By default, each call is a separate turn.",
)
@click.option("--yes", is_flag=True, help="Approve the call without asking, if it needs confirmation.")
@with_registry
@as_json
def call(settings: Settings, as_json: bool, **asked: Any) -> None:
    """Run TOOL with ARGUMENTS and apply all policies.

    ARGUMENTS is a JSON object, or - to read it from standard input. The command shows the result, the
    decision of each policy and the duration. If the tool needs confirmation, you are asked in the terminal.
    """
    import asyncio

    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError

    if asked["call_id"] and not asked["session_id"]:
        raise click.UsageError("a call id is valid only in its session, so --call-id needs --session")
    if asked["turn"] and not asked["session_id"]:
        raise click.UsageError("a turn belongs to a session, so --turn needs --session")
    if asked["arguments"] == "-":
        if sys.stdin is None:
            raise click.ClickException(
                "cannot read the arguments from standard input (`-`) because it is closed; "
                "give them as JSON instead"
            )
        asked["arguments"] = sys.stdin.read()
    try:
        # A tool's own output to standard output must not mix with the JSON.
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            shown, reads = asyncio.run(_call(settings, asked, quiet=as_json))
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None
    except _DeclinedError:
        echo("Declined; nothing was run.", err=True)
        sys.exit(1)
    except asyncio.CancelledError:
        echo("Cancelled before there was a result.", err=True)
        raise click.Abort from None
    except _UnansweredError:
        echo("Nothing was run.", err=True)
        raise click.Abort from None
    if as_json:
        print_json(shown)
    else:
        _print_result(shown, reads=reads)
    sys.exit(0 if shown["answer"]["ok"] else 1)


class _DeclinedError(Exception):
    """The user declined the confirmation."""


class _UnansweredError(Exception):
    """The user left the confirmation with Ctrl-C or Ctrl-D."""


async def _call(settings: Settings, asked: Mapping[str, Any], *, quiet: bool) -> tuple[dict[str, Any], bool]:
    """Run the call; return what to print, and whether its tool only reads."""
    from jackfield.contract.tool import ToolCall
    from jackfield.runtime import Runtime

    runtime = await Runtime.start(settings)
    try:
        if (asked["session_id"] or asked["user"]) and runtime.components.store_name == "memory":
            _warn_about_memory_store(settings)
        events: list[dict[str, Any]] = []

        def publish(event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:  # noqa: ARG001
            if event in _RESULT_EVENTS:
                return
            events.append({"event": event, **fields})
            if event == "tool_progress" and not quiet:
                echo(click.style(_progress_text(fields), dim=True), err=True)

        session = await _session(runtime, asked, publish)
        with interruptible(runtime.orchestrator, session):
            (answer,) = await runtime.orchestrator.handle(
                session, [ToolCall(asked["tool"], asked["arguments"], asked["call_id"])]
            )
        call = answer.call
        _warn_about_call_id(asked["call_id"], call)
        answer = await _resolve_confirmation(runtime, session, answer, approve=asked["yes"], quiet=quiet)
        call = answer.call or call
        await session.save_if_unchanged(runtime.store)
        shown = {
            "answer": json.loads(answer.wire),
            "session": session.id,
            "turn": session.turn.number,
            "decisions": call.policy_trace() if call else {},
            "events": [{**event, "token": "(hidden)"} if "token" in event else event for event in events],
        }
        return shown, call is None or call.tool.reads
    finally:
        await runtime.close()


def _progress_text(fields: Mapping[str, Any]) -> str:
    """Return what to print for a progress report: its message, or the partial result in it."""
    data = fields.get("data")
    if data is None:
        data = fields["message"]
    text = data if isinstance(data, str) else "\n".join(json.dumps(item, ensure_ascii=False) for item in data)
    return "\n".join(f"  {printable(line)}" for line in text.splitlines())


def _warn_about_memory_store(settings: Settings) -> None:
    how = (
        'remove `store = "memory"` from the settings'
        if settings.store
        else "install jackfield-store-sqlite and run `jackfield build`"
    )
    lost = "nothing about this session or user is saved for the next call"
    echo(f"The store is in memory: {lost}. To use a persistent store, {how}.", err=True)


def _warn_about_call_id(call_id: str | None, call: Call | None) -> None:
    """Warn if the duplicates policy ignores the call id, so that a repeated call would run again."""
    if call_id and call is not None and call.key and call_id not in call.key:
        echo(
            f"The call id {call_id!r} is ignored, so repeating this call would run the tool again. Providers "
            "reuse ids that are short or contain `temp`: use at least 9 characters, without `temp`.",
            err=True,
        )


def _ask_confirmation() -> bool:
    """Ask the user; the default SIGINT handler lets Ctrl-C end the wait, unlike the event loop's."""
    import signal

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm("Run it?", default=False)
    except click.Abort:
        raise _UnansweredError from None
    finally:
        signal.signal(signal.SIGINT, before)


async def _session(runtime: Runtime, asked: Mapping[str, Any], publish: Any) -> Session:
    session_id = asked["session_id"]
    stored = await _stored_session(runtime, session_id, publish) if session_id else None
    if stored is not None:
        _check_same_session(asked, stored)
        if asked["turn"] is None or stored.turn.group != asked["turn"]:
            await runtime.begin_turn(stored, asked["said"])
            stored.turn.group = asked["turn"]
        else:
            stored.add_user_text(asked["said"])
        return stored
    mode: Mode = asked["mode"] or "text"
    session = await runtime.open_session(mode, user=asked["user"], session_id=session_id, publish=publish)
    session.add_user_text(asked["said"])
    session.turn.group = asked["turn"]
    return session


async def _stored_session(runtime: Runtime, session_id: str, publish: Any) -> Session | None:
    from jackfield.registry.registry import RegistryError

    try:
        return await runtime.resume_session(session_id, publish)
    except RegistryError as error:
        raise RegistryError(f"{error}; use a different --session") from None


def _check_same_session(asked: Mapping[str, Any], stored: Session) -> None:
    """Reject a call whose mode or user differs from the session's."""
    for option, wanted, has in (
        ("--mode", asked["mode"], stored.mode),
        ("--user", asked["user"], stored.user),
    ):
        if wanted and wanted != has:
            owner = f"belongs to {has}" if has else "has no user"
            fact = owner if option == "--user" else f"is a {has} session"
            raise click.UsageError(f"session {stored.id} {fact}: omit {option}, or use a different --session")


async def _resolve_confirmation(
    runtime: Runtime,
    session: Session,
    answer: CallResult,
    *,
    approve: bool,
    quiet: bool,
) -> CallResult:
    """Ask for confirmation if the tool needs it; without a terminal the call stays pending."""
    from jackfield.call_states import CallState, state_of

    waits = answer.key and state_of(answer.wire) is CallState.WAITING
    pending = await runtime.confirmations.for_call(session.id, answer.key) if waits else None
    if pending is None:
        return answer
    if not approve:
        card = click.style(pending.preview, bold=True)
        if quiet:
            echo(
                "This call needs confirmation, and --json cannot prompt for it. Use --yes to approve it.",
                err=True,
            )
            return answer
        if sys.stdin is None or not sys.stdin.isatty():
            echo(card, err=True)
            echo("This call needs confirmation. Run it in a terminal, or use --yes to approve it.", err=True)
            return answer
        echo(card)
        approve = _ask_confirmation()
    with interruptible(runtime.orchestrator, session):
        answer = await runtime.resolve_pending(session, pending, approve=approve)
    state = state_of(answer.wire)
    if state is CallState.EXPIRED:
        raise click.ClickException("The confirmation expired; nothing was run. Run the command again.")
    if state is CallState.DECLINED:
        raise _DeclinedError
    return answer


def _print_result(shown: Mapping[str, Any], *, reads: bool) -> None:
    """Print the data to standard output; print intents, events and policy decisions to standard error."""
    answer, decisions = shown["answer"], shown["decisions"]
    replayed = decisions.get("duplicates") == "replayed"
    if answer["ok"]:
        echo(json.dumps(answer["data"], indent=2, ensure_ascii=False))
        for intent in answer["intents"]:
            _print_detail(f"intent {intent['type']}{_members(intent, 'type')}")
    else:
        first, *others = _error_lines(answer["error"], reads=reads)
        echo(click.style(first, fg="red"), err=True)
        for line in others:
            _print_detail(f"  -> {line}")
    for event in shown["events"]:
        if event["event"] not in _PRINTED_AT_ONCE:
            _print_detail(f"event: {event['event']}{_members(event, 'event')}")
    trace = ", ".join(f"{name} {decision}" for name, decision in decisions.items()) or "none"
    _print_detail(f"policies: {trace}")
    meta = answer["meta"]
    tool = f"{meta['toolId']} {meta['toolVersion']}".strip()
    _print_detail(
        f"{tool} {'replayed, ' if replayed else ''}in {meta['duration']} ms, registry "
        f"{meta['registryVersion']}, session {shown['session']}, turn {shown['turn']}"
    )


def _print_detail(line: str) -> None:
    # Continuation lines are indented, so that they do not look like separate messages.
    echo(click.style(line.replace("\n", "\n     "), dim=True), err=True)


def _members(whole: Mapping[str, Any], name: str) -> str:
    rest = {key: value for key, value in whole.items() if key != name}
    return f" {json.dumps(rest, ensure_ascii=False, default=str, skipkeys=True)}" if rest else ""


def _error_lines(error: Mapping[str, Any], *, reads: bool) -> Iterator[str]:
    """Yield the error message, then one line for each further fact."""
    if error["type"] == "CONFIRMATION_REQUIRED":
        # The error's message is for the model; the user has just seen the confirmation card.
        yield "CONFIRMATION_REQUIRED: nothing was run."
        return
    yield f"{error['type']}: {error['message']}{_syntax_error_place(error)}"
    if error.get("partialSideEffects") and not reads:
        yield "The call may still have changed something."
    if error.get("suggestion"):
        yield error["suggestion"]


def _syntax_error_place(error: Mapping[str, Any]) -> str:
    """Return the place of a JSON syntax error, which the message for the model omits."""
    details = error.get("details")
    faults = details.get("errors") if isinstance(details, dict) else None
    first = faults[0] if isinstance(faults, list) and faults else None
    where = first.get("path") if isinstance(first, dict) else None
    return f" ({where})" if isinstance(where, str) and where.startswith("line ") else ""
