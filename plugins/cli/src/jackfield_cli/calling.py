"""`jackfield call`: a governed call from the shell."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import as_json, print_json, with_registry
from jackfield_cli.report import echo

if TYPE_CHECKING:
    from jackfield.contract.context import Mode
    from jackfield.contract.response import ToolResponse
    from jackfield.governance import Call
    from jackfield.orchestrator import Answer
    from jackfield.runtime import Runtime
    from jackfield.session.session import Session
    from jackfield.settings import Settings


LONGEST_NAME = 200


def _plain(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A text that can be kept: what a shell hands over need not be UTF-8."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise click.BadParameter("it is not UTF-8") from None
    if option.name != "said" and value and len(value) > LONGEST_NAME:
        raise click.BadParameter(f"it has {len(value)} characters, and may have {LONGEST_NAME}")
    return value


@click.command()
@click.argument("tool")
@click.argument("arguments", default="{}")
@click.option(
    "--mode", type=click.Choice(["text", "voice"]), default="text", help="The mode of a new session."
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
@click.option("--call-id", metavar="ID", help="The id a provider would give; the same id is run once.")
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

    if asked["arguments"] == "-":
        if sys.stdin is None:
            raise click.ClickException("- reads the arguments from standard input, which is closed")
        asked["arguments"] = sys.stdin.read()
    try:
        # What a tool prints is not part of the document.
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            shown = asyncio.run(_call(settings, asked, quiet=as_json))
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None
    except _DeclinedError:
        echo("Declined; nothing was run.", err=True)
        sys.exit(1)
    if as_json:
        print_json(shown)
    else:
        _print(shown)
    sys.exit(0 if shown["answer"]["ok"] else 1)


class _DeclinedError(Exception):
    """The person at the terminal said no."""


class _Trail:
    """Remembers the last call that was answered, for its decisions."""

    def __init__(self) -> None:
        self.call: Call | None = None

    def call_finished(self, call: Call, response: ToolResponse) -> None:  # noqa: ARG002
        self.call = call

    def session_opened(self, session: Session, *, prompt_tokens: int, declaration_tokens: int) -> None: ...

    def turn_began(self, session: Session) -> None: ...

    def session_ended(self, session: Session) -> None: ...

    async def close(self) -> None: ...


async def _call(settings: Settings, asked: Mapping[str, Any], *, quiet: bool) -> dict[str, Any]:
    from jackfield.contract.call import ToolCall
    from jackfield.runtime import Runtime

    trail = _Trail()
    runtime = await Runtime.start(settings, observers=[trail])
    try:
        if (asked["session_id"] or asked["user"]) and runtime.provision.store_name == "memory":
            _warn_of_forgetting(settings)
        events: list[dict[str, Any]] = []

        def publish(event: str, fields: Mapping[str, Any]) -> None:
            events.append({"event": event, **fields})
            if event == "tool_progress" and not quiet:
                echo(click.style(f"  {fields['message']}", dim=True), err=True)

        session = await _session(runtime, asked, publish)
        (answer,) = await runtime.orchestrator.handle(
            session, [ToolCall(asked["tool"], asked["arguments"], asked["call_id"])]
        )
        answer = await _confirmed(runtime, session, answer, events, approve=asked["yes"], quiet=quiet)
        await session.save_unless_moved(runtime.store)
        return {
            "answer": json.loads(answer.wire),
            "session": session.id,
            "turn": session.turn.number,
            "decisions": trail.call.trail() if trail.call else {},
            "events": [{**event, "token": "(hidden)"} if "token" in event else event for event in events],
        }
    finally:
        await runtime.close()


def _warn_of_forgetting(settings: Settings) -> None:
    how = (
        'take `store = "memory"` out of the settings' if settings.store else "install jackfield-store-sqlite"
    )
    lost = "nothing about this session or user is kept for the next call"
    echo(f"The store is in memory: {lost}. To keep it, {how}.", err=True)


def _asked() -> bool:
    """Ask; Ctrl-C has to end the waiting, and the loop's own handler would only make a note of it."""
    import signal

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm("Run it?", default=False)
    finally:
        signal.signal(signal.SIGINT, before)


async def _session(runtime: Runtime, asked: Mapping[str, Any], publish: Any) -> Session:
    session_id = asked["session_id"]
    kept = await runtime.resume_session(session_id, publish) if session_id else None
    if kept is not None:
        await runtime.begin_turn(kept, asked["said"])
        return kept
    mode: Mode = asked["mode"]
    session = await runtime.open_session(mode, user=asked["user"], session_id=session_id, publish=publish)
    session.hear(asked["said"])
    return session


async def _confirmed(
    runtime: Runtime,
    session: Session,
    answer: Answer,
    events: list[dict[str, Any]],
    *,
    approve: bool,
    quiet: bool,
) -> Answer:
    """Ask the person at the terminal where the tool needs it; without one the call stays pending."""
    from jackfield.orchestrator import Answer

    waiting = [event for event in events if event["event"] == "confirmation_required"]
    if not waiting:
        return answer
    if not approve:
        card = click.style(waiting[-1]["preview"], bold=True)
        if quiet or not sys.stdin.isatty():
            if not quiet:
                echo(card, err=True)
            echo("This needs a person's word: answer on a terminal, or approve with --yes.", err=True)
            return answer
        echo(card)
        approve = _asked()
    settled = await runtime.confirm(session, waiting[-1]["token"], approve=approve)
    if not isinstance(settled, Answer):
        raise _DeclinedError
    return settled


def _print(shown: Mapping[str, Any]) -> None:
    answer = shown["answer"]
    if answer["ok"]:
        echo(json.dumps(answer["data"], indent=2, ensure_ascii=False))
        for intent in answer["intents"]:
            echo(f"intent {intent}")
    elif answer["error"]["type"] == "CONFIRMATION_REQUIRED":
        # The answer's own sentences tell the model what to say; the person has just read the card.
        echo(click.style("CONFIRMATION_REQUIRED: nothing was run.", fg="red"), err=True)
    else:
        error = answer["error"]
        echo(click.style(f"{error['type']}: {error['message']}", fg="red"), err=True)
        if error.get("suggestion"):
            echo(click.style(f"  -> {error['suggestion']}", dim=True), err=True)
    trail = ", ".join(f"{name} {decision}" for name, decision in shown["decisions"].items()) or "none"
    meta = answer["meta"]
    echo(click.style(f"policies: {trail}", dim=True), err=True)
    echo(
        click.style(
            f"{meta['toolId']} {meta['toolVersion'] or '(not there)'} in {meta['duration']} ms, registry "
            f"{meta['registryVersion']}, session {shown['session']}, turn {shown['turn']}",
            dim=True,
        ),
        err=True,
    )
