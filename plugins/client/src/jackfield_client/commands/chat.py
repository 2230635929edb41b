"""`jackfield chat`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jackfield_client.commands.options import Place, host, run, with_host
from jackfield_client.own_host import Wanted

if TYPE_CHECKING:
    from jackfield.protocol.close_codes import CloseReason

    from jackfield_client.messages import SessionInfo


@click.command()
@click.argument("url", required=False)
@with_host
@click.option("--resume", is_flag=True, help="Go on with the last session at this address.")
@click.option("--keep", is_flag=True, help="Leave the session open for --resume (always so at a terminal).")
def chat(
    *,
    url: str | None,
    token_env: str | None,
    insecure: bool,
    yes: bool,
    user: str | None,
    provider: str | None,
    registry: str | None,
    config: str | None,
    resume: bool,
    keep: bool,
) -> None:
    """Talk to the model of the host at URL, which may use the host's tools, under every policy.

    Without URL a host of one's own is started for as long as the conversation lasts.

    Write a line and read the answer as it comes; what tools do is shown in between, and what needs your word
    is asked. Ctrl-C interrupts an answer, Ctrl-D ends. Lines from a pipe are taken one after the other, and
    the exit status is 1 when one of them was not answered. A connection that is lost is had back.
    """
    wanted = Wanted(provider, registry, config, user)

    async def converse() -> bool:
        async with host(url, token_env, wanted) as place:
            return await _converse(place, insecure=insecure, approve=yes, resume=resume, keep=keep)

    run(converse())


def _introduce(welcome: SessionInfo) -> None:
    """Say which provider answers and why, and how to get a better one, as far as the host tells."""
    from jackfield_client.terminal.wording import one_line

    if welcome.provider_reason is None or welcome.resumed:
        return
    lines = [f"({welcome.provider} answers: {one_line(welcome.provider_reason)})"]
    if welcome.provider_hints:
        lines.append("(for better answers, do one of these and start again:")
        lines += [f"   {one_line(hint)}" for hint in welcome.provider_hints]
        lines[-1] += ")"
    for line in lines:
        click.echo(click.style(line, dim=True), err=True)


def _take_leave(place: Place, closing: CloseReason | None, *, at_terminal: bool) -> None:
    from jackfield_client import keepsakes

    if closing is not None and closing.name in ("ended", "max_duration"):
        keepsakes.forget(place.known_as)
    if closing is not None and at_terminal:
        click.echo(f"({closing.reason})", err=True)
    elif at_terminal:
        # The prompt is still open.
        click.echo(err=True)
        if not place.own:
            click.echo(f"(`jackfield chat --resume {place.url}` goes on with this conversation)", err=True)


async def _converse(place: Place, *, insecure: bool, approve: bool, resume: bool, keep: bool) -> bool:
    from jackfield_client import keepsakes
    from jackfield_client.errors import TurnedAwayError
    from jackfield_client.session import connect
    from jackfield_client.terminal.chatting import Chat
    from jackfield_client.terminal.lines import Lines

    earlier = keepsakes.kept(place.known_as) if resume else None
    if resume and earlier is None:
        raise click.ClickException(
            "There is no session at this address to go on with; begin one, without --resume."
        )
    try:
        session = connect(
            place.url, token=place.token, insecure=insecure, resume=earlier.token if earlier else None
        )
    except ValueError as error:
        raise click.UsageError(f"{error}; --insecure says so.") from None
    try:
        async with Lines() as lines, session:
            welcome = session.info
            keepsakes.keep(place.known_as, keepsakes.Keepsake(welcome.token, welcome.session))
            _introduce(welcome)
            fine = await Chat(session, lines, approve=approve).run()
            if session.closing is None and not (keep or lines.terminal):
                await session.end()
            _take_leave(place, session.closing, at_terminal=lines.terminal)
            return fine
    except TurnedAwayError as away:
        if away.closing.name in ("ended", "unknown_session"):
            keepsakes.forget(place.known_as)
        raise
