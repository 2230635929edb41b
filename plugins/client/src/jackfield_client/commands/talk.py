"""`jackfield talk`."""

from __future__ import annotations

from pathlib import Path

import click

from jackfield_client.commands.options import Place, host, run, with_host
from jackfield_client.own_host import Wanted

_SCHEMES = ("http://", "https://", "ws://", "wss://")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.wav... [URL]")
@with_host
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write what was answered here (WAV)."
)
@click.option("--fast", is_flag=True, help="Speak and listen as fast as the host allows, not in real time.")
@click.option(
    "--wait", type=click.FloatRange(min=0.1), default=60.0, show_default=True, metavar="SECONDS",
    help="How long an answer may take to begin, or to go on.",
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
    """Speak to the model of the host at URL: what each FILE.wav holds is one turn.

    Without URL a host of one's own is started for as long as the conversation lasts.

    The files are sent as a microphone would, and silence behind them, until the answer is complete. Shown are
    the words of both sides as they are said, what tools do, and what the session is doing. Nothing is played;
    the host is told of the answer as if it were, and --out keeps it. The exit status is 1 when a file was not
    answered. Sound of another form than 24 kHz, 16 bit needs: pip install "jackfield-client[audio]".
    """
    *spoken, last = files
    url = last if last.startswith(_SCHEMES) else None
    paths = [Path(name) for name in (spoken if url else files)]
    if not paths:
        raise click.UsageError("Name a WAV file to speak from.")
    wanted = Wanted(provider, registry, config, user)

    async def converse() -> bool:
        async with host(url, token_env, wanted) as place:
            return await _converse(place, paths, out, insecure=insecure, approve=yes, fast=fast, wait=wait)

    run(converse())


async def _converse(
    place: Place,
    paths: list[Path],
    out: Path | None,
    *,
    insecure: bool,
    approve: bool,
    fast: bool,
    wait: float,
) -> bool:
    from jackfield_client.session import connect
    from jackfield_client.voice.recording import Recording
    from jackfield_client.voice.talking import Talking
    from jackfield_client.voice.wav import Sound, SoundError

    try:
        # Looked at before anything is connected, so that a file that cannot be read costs nothing.
        sounds = [Sound(path) for path in paths]
        session = connect(place.url, mode="voice", token=place.token, insecure=insecure)
    except SoundError as error:
        raise click.ClickException(str(error)) from None
    except ValueError as error:
        raise click.UsageError(f"{error}; --insecure says so.") from None
    try:
        with Recording(out) as recording:
            async with session:
                fine = await Talking(session, recording, approve=approve, fast=fast, wait=wait).run(sounds)
                await session.end()
                return fine
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}.") from None
    except SoundError as error:
        raise click.ClickException(str(error)) from None
