"""The commands `jackfield chat` and `jackfield talk`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from jackfield_client.embedded_host import DEFAULT_USER, EmbeddedHostOptions, run_embedded_host

if TYPE_CHECKING:
    from jackfield.protocol.close_codes import CloseReason

    from jackfield_client.messages import SessionInfo

_URL_SCHEMES = ("http://", "https://", "ws://", "wss://")

_HOST_OPTIONS = (
    click.option("--token-env", metavar="NAME", help="The environment variable that holds the host's token."),
    click.option(
        "--insecure", is_flag=True, help="Send the token even if the URL does not begin with https://."
    ),
    click.option("--yes", is_flag=True, help="Approve every call that needs confirmation, without asking."),
    click.option("--user", metavar="NAME", help="The user's name (only without URL)."),
    click.option(
        "--provider", metavar="NAME", help="The model provider; overrides the setting (only without URL)."
    ),
    click.option("--registry", metavar="FILE", help="The registry file (only without URL)."),
    click.option("--config", metavar="FILE", help="The settings file (only without URL)."),
)


def _with_host_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_HOST_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("url", required=False)
@_with_host_options
@click.option("--resume", is_flag=True, help="Resume the last session on this host.")
@click.option("--keep", is_flag=True, help="Keep the session for --resume (the default at a terminal).")
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
    """Chat with the host at URL.

    The model can use the host's tools, and every policy applies. Without URL, the command starts its own
    host for the duration of the chat.

    Type a message and read the answer as it is written. Tool calls are shown in between, and you are asked
    before a tool does something that needs confirmation. Ctrl-C interrupts an answer, and Ctrl-D quits.
    Lines from a pipe are sent one after the other; the exit status is 1 if one of them gets no answer. The
    client reconnects automatically.
    """
    options = EmbeddedHostOptions(provider, registry, config, user)

    async def run_chat() -> bool:
        async with _open_host(url, token_env, options) as host:
            return await _chat(host, insecure=insecure, approve=yes, resume=resume, keep=keep)

    _run(run_chat())


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.wav... [URL]")
@_with_host_options
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Record the answers in this WAV file."
)
@click.option("--fast", is_flag=True, help="Send and receive as fast as the host allows, not in real time.")
@click.option(
    "--wait", type=click.FloatRange(min=0.1), default=60.0, show_default=True, metavar="SECONDS",
    help="How long the client waits for an answer to start or to continue.",
)  # fmt: skip
def talk(
    *,
    files: tuple[str, ...],
    token_env: str | None,
    insecure: bool,
    yes: bool,
    user: str | None,
    provider: str | None,
    registry: str | None,
    config: str | None,
    out: Path | None,
    fast: bool,
    wait: float,
) -> None:
    """Send recorded speech to the host at URL; each FILE.wav is one turn.

    Without URL, the command starts its own host for the duration of the conversation.

    Each file is sent as if from a microphone, followed by silence until the answer is complete. The command
    shows both sides of the transcript, the tool calls, and the session's state. It plays no sound, but
    reports playback to the host as if it did; --out records the answers. The exit status is 1 if a file gets
    no answer.

    \b
    Audio files other than 24 kHz, 16-bit WAV files need an extra:
      pip install "jackfield-client[audio]"
    """
    *before_last, last = files
    url = last if last.startswith(_URL_SCHEMES) else None
    paths = [Path(name) for name in (before_last if url else files)]
    if not paths:
        raise click.UsageError("There is no WAV file to send; give at least one before the URL.")
    options = EmbeddedHostOptions(provider, registry, config, user)

    async def run_talk() -> bool:
        async with _open_host(url, token_env, options) as host:
            return await _talk(host, paths, out, insecure=insecure, approve=yes, fast=fast, wait=wait)

    _run(run_talk())


# The host.


class HostTarget(NamedTuple):
    """The host that a command connects to."""

    url: str
    token: str | None
    key: str
    """The key under which its last session is saved."""
    embedded: bool = False
    """True if the host was started for this command alone."""


@asynccontextmanager
async def _open_host(
    url: str | None, token_env: str | None, options: EmbeddedHostOptions
) -> AsyncIterator[HostTarget]:
    """Yield the host at the URL, or start an embedded one."""
    if url is None:
        if token_env:
            raise click.UsageError(
                "--token-env needs a URL; the host that this command starts needs no token."
            )
        async with run_embedded_host(options) as host:
            key = f"embedded host in {Path.cwd()} as {options.user or DEFAULT_USER}"
            yield HostTarget(host.url, host.token, key, embedded=True)
        return
    for name, value in options._asdict().items():
        if value is not None:
            raise click.UsageError(
                f"--{name} cannot be used with a URL; the host at {url} has its own settings."
            )
    from jackfield_client.dial import parse_address

    try:
        base = parse_address(url).base
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None
    yield HostTarget(url, _token(token_env), f"{base} by {token_env}" if token_env else base)


def _token(name: str | None) -> str | None:
    if name is None:
        return None
    token = os.environ.get(name, "").strip()
    if not token:
        raise click.UsageError(f"The environment variable {name} (--token-env) is empty or not set.")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise click.UsageError(
            f"The token in the environment variable {name} (--token-env) contains an invalid character. "
            "Copy the token again."
        )
    return token


def _run(work: Coroutine[Any, Any, bool]) -> None:
    """Run a command; the exit status is 1 if it returns False."""
    from jackfield_client.errors import ClientError
    from jackfield_client.terminal.screen import describe_error

    try:
        succeeded = asyncio.run(work)
    except ClientError as error:
        raise click.ClickException(describe_error(error)) from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None
    if not succeeded:
        raise click.exceptions.Exit(1)


# chat


async def _chat(host: HostTarget, *, insecure: bool, approve: bool, resume: bool, keep: bool) -> bool:
    from jackfield_client import saved_sessions
    from jackfield_client.errors import SessionRejectedError
    from jackfield_client.session import connect
    from jackfield_client.terminal.chat import TextChat
    from jackfield_client.terminal.input import LineReader

    saved = saved_sessions.load(host.key) if resume else None
    if resume and saved is None:
        raise click.ClickException(
            "There is no saved session for this host; start a new one without --resume."
        )
    try:
        session = connect(
            host.url, token=host.token, insecure=insecure, resume=saved.token if saved else None
        )
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None
    try:
        async with LineReader() as lines, session:
            info = session.info
            saved_sessions.save(host.key, saved_sessions.SavedSession(info.token, info.session))
            _print_provider(info)
            succeeded = await TextChat(session, lines, approve=approve).run()
            if session.close_reason is None and not (keep or lines.is_terminal):
                await session.end()
            _finish_chat(host, session.close_reason, is_terminal=lines.is_terminal)
            return succeeded
    except SessionRejectedError as rejected:
        if rejected.close_reason.name in ("ended", "unknown_session"):
            saved_sessions.delete(host.key)
        raise


def _print_provider(info: SessionInfo) -> None:
    """Print which provider answers and why, and how to get a better one, if the host says so."""
    from jackfield_client.terminal.screen import one_line

    if info.provider_reason is None or info.resumed:
        return
    lines = [f"(provider: {info.provider}; {one_line(info.provider_reason)})"]
    if info.provider_hints:
        lines.append("(for better answers, do one of the following and start again:")
        lines += [f"   {one_line(hint)}" for hint in info.provider_hints]
        lines[-1] += ")"
    for line in lines:
        click.echo(click.style(line, dim=True), err=True)


def _finish_chat(host: HostTarget, close_reason: CloseReason | None, *, is_terminal: bool) -> None:
    from jackfield_client import saved_sessions

    if close_reason is not None and close_reason.name in ("ended", "max_duration"):
        saved_sessions.delete(host.key)
    if close_reason is not None and is_terminal:
        click.echo(f"({close_reason.reason})", err=True)
    elif is_terminal:
        # The cursor is still behind the prompt.
        click.echo(err=True)
        if not host.embedded:
            click.echo(f"(resume this conversation with `jackfield chat --resume {host.url}`)", err=True)


# talk


async def _talk(
    host: HostTarget,
    paths: list[Path],
    out: Path | None,
    *,
    insecure: bool,
    approve: bool,
    fast: bool,
    wait: float,
) -> bool:
    from jackfield_client.session import connect
    from jackfield_client.voice.talk import VoiceChat
    from jackfield_client.voice.wav import AudioFile, AudioFileError, WavRecorder

    try:
        # Check all files before connecting, so that an unreadable one starts no session.
        files = [AudioFile(path) for path in paths]
        session = connect(host.url, mode="voice", token=host.token, insecure=insecure)
    except AudioFileError as error:
        raise click.ClickException(str(error)) from None
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None
    try:
        with WavRecorder(out) as recorder:
            async with session:
                chat = VoiceChat(session, recorder, approve=approve, fast=fast, wait=wait)
                succeeded = await chat.run(files)
                await session.end()
                return succeeded
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}.") from None
    except AudioFileError as error:
        raise click.ClickException(str(error)) from None
