"""`jackfield call`: a governed call from the shell."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.answers import print_answer
from jackfield_cli.options import as_json, print_json, with_registry
from jackfield_cli.report import echo

if TYPE_CHECKING:
    from jackfield.contract.context import Mode
    from jackfield.governance import Call
    from jackfield.orchestrator import CallResult
    from jackfield.runtime import Runtime
    from jackfield.session.session import Session
    from jackfield.settings import Settings


LONGEST_NAME = 200

# The answer and the decisions about it are shown by themselves.
_ANSWER_EVENTS = frozenset({"tool_complete", "tool_decisions", "tool_error"})


def _plain(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A text that can be kept: what a shell hands over need not be UTF-8."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise click.BadParameter("it is not UTF-8") from None
    if option.name != "said" and value == "":
        raise click.BadParameter("it is empty; leave the option out where there is none")
    if option.name != "said" and value and len(value) > LONGEST_NAME:
        raise click.BadParameter(f"it has {len(value)} characters, and may have {LONGEST_NAME}")
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
    callback=_plain,
    help="Go on with this session, or begin one of this name.",
)
@click.option("--user", metavar="NAME", callback=_plain, help="Who is calling, in a new session.")
@click.option(
    "--said",
    metavar="WORDS",
    default="",
    callback=_plain,
    help="What the user said in this turn; policies may ask.",
)
@click.option(
    "--call-id",
    metavar="ID",
    callback=_plain,
    help="The id a provider would give: in one --session it is run once, if it has 9 characters or more.",
)
@click.option(
    "--turn",
    metavar="NAME",
    callback=_plain,
    help="Count this call with the previous calls of this --session and NAME as one turn, with one budget; "
    "otherwise every call is a turn of its own.",
)
@click.option("--yes", is_flag=True, help="Approve without asking, where a tool needs confirmation.")
@with_registry
@as_json
def call(settings: Settings, as_json: bool, **asked: Any) -> None:
    """Run TOOL with ARGUMENTS under every policy.

    ARGUMENTS are a JSON object; - reads them from standard input. Shows the answer, what each policy decided
    and how long it took. Where a tool needs confirmation, it asks on the terminal.
    """
    import asyncio

    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError

    if asked["call_id"] and not asked["session_id"]:
        raise click.UsageError("--call-id is known in its session alone, so it needs --session")
    if asked["turn"] and not asked["session_id"]:
        raise click.UsageError("--turn groups calls of one session, so it needs --session")
    if asked["arguments"] == "-":
        if sys.stdin is None:
            raise click.ClickException("- reads the arguments from standard input, which is closed")
        asked["arguments"] = sys.stdin.read()
    try:
        # What a tool prints is not part of the document.
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            shown, reads = asyncio.run(_call(settings, asked, quiet=as_json))
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None
    except _DeclinedError:
        echo("Declined; nothing was run.", err=True)
        sys.exit(1)
    except asyncio.CancelledError:
        echo("Given up before there was an answer.", err=True)
        raise click.Abort from None
    except _UnansweredError:
        echo("Nothing was run.", err=True)
        raise click.Abort from None
    if as_json:
        print_json(shown)
    else:
        print_answer(shown, reads=reads)
    sys.exit(0 if shown["answer"]["ok"] else 1)


class _DeclinedError(Exception):
    """The person at the terminal said no."""


class _UnansweredError(Exception):
    """The person at the terminal went away from the question."""


async def _call(settings: Settings, asked: Mapping[str, Any], *, quiet: bool) -> tuple[dict[str, Any], bool]:
    """What there is to show, and whether it is about a tool that only reads."""
    from jackfield.contract.tool import ToolCall
    from jackfield.runtime import Runtime

    from jackfield_cli.interrupting import interruptible

    runtime = await Runtime.start(settings)
    try:
        if (asked["session_id"] or asked["user"]) and runtime.components.store_name == "memory":
            _warn_of_forgetting(settings)
        events: list[dict[str, Any]] = []

        def publish(event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:  # noqa: ARG001
            if event in _ANSWER_EVENTS:
                return
            events.append({"event": event, **fields})
            if event == "tool_progress" and not quiet:
                echo(click.style(f"  {fields['message']}", dim=True), err=True)

        session = await _session(runtime, asked, publish)
        with interruptible(runtime.orchestrator, session):
            (answer,) = await runtime.orchestrator.handle(
                session, [ToolCall(asked["tool"], asked["arguments"], asked["call_id"])]
            )
        call = answer.call
        _warn_of_an_id(asked["call_id"], call)
        answer = await _confirmed(runtime, session, answer, approve=asked["yes"], quiet=quiet)
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


def _warn_of_forgetting(settings: Settings) -> None:
    how = (
        'take `store = "memory"` out of the settings' if settings.store else "install jackfield-store-sqlite"
    )
    lost = "nothing about this session or user is kept for the next call"
    echo(f"The store is in memory: {lost}. To keep it, {how}.", err=True)


def _warn_of_an_id(call_id: str | None, call: Call | None) -> None:
    """Whoever names a call counts on it, and which names hold is up to the policy that keeps them."""
    if call_id and call is not None and call.key and call_id not in call.key:
        echo(
            f"The id {call_id!r} does not hold: the same call with it is run again. Take a longer one.",
            err=True,
        )


def _asked() -> bool:
    """Ask; Ctrl-C has to end the waiting, and the loop's own handler would only make a note of it."""
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
    kept = await _kept(runtime, session_id, publish) if session_id else None
    if kept is not None:
        _refuse_another(asked, kept)
        if asked["turn"] is None or kept.turn.group != asked["turn"]:
            await runtime.begin_turn(kept, asked["said"])
            kept.turn.group = asked["turn"]
        else:
            kept.add_user_text(asked["said"])
        return kept
    mode: Mode = asked["mode"] or "text"
    session = await runtime.open_session(mode, user=asked["user"], session_id=session_id, publish=publish)
    session.add_user_text(asked["said"])
    session.turn.group = asked["turn"]
    return session


async def _kept(runtime: Runtime, session_id: str, publish: Any) -> Session | None:
    from jackfield.registry.registry import RegistryError

    try:
        return await runtime.resume_session(session_id, publish)
    except RegistryError as error:
        raise RegistryError(f"{error}; begin another --session") from None


def _refuse_another(asked: Mapping[str, Any], kept: Session) -> None:
    """A session stays in its mode and its user's; a call that means another one is not made in it."""
    for option, wanted, has in (
        ("--mode", asked["mode"], kept.mode),
        ("--user", asked["user"], kept.user),
    ):
        if wanted and wanted != has:
            owner = f"is {has}'s" if has else "is nobody's"
            fact = owner if option == "--user" else f"is a {has} session"
            raise click.UsageError(
                f"session {kept.id} {fact}: leave {option} out, or begin another --session"
            )


async def _confirmed(
    runtime: Runtime,
    session: Session,
    answer: CallResult,
    *,
    approve: bool,
    quiet: bool,
) -> CallResult:
    """Ask the person at the terminal where the tool needs it; without one the call stays pending."""
    from jackfield.outcomes import CallState, state_of

    from jackfield_cli.interrupting import interruptible

    waits = answer.key and state_of(answer.wire) is CallState.WAITING
    pending = await runtime.confirmations.for_call(session.id, answer.key) if waits else None
    if pending is None:
        return answer
    if not approve:
        card = click.style(pending.preview, bold=True)
        if quiet:
            echo("This needs a person's approval, and --json asks nobody: approve with --yes.", err=True)
            return answer
        if sys.stdin is None or not sys.stdin.isatty():
            echo(card, err=True)
            echo("This needs a person's approval: answer on a terminal, or approve with --yes.", err=True)
            return answer
        echo(card)
        approve = _asked()
    with interruptible(runtime.orchestrator, session):
        answer = await runtime.resolve_pending(session, pending, approve=approve)
    state = state_of(answer.wire)
    if state is CallState.EXPIRED:
        raise click.ClickException("The question was open for too long; nothing was run. Call again.")
    if state is CallState.DECLINED:
        raise _DeclinedError
    return answer
