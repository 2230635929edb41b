"""The command `jackfield model`, which downloads the language model's file."""

from __future__ import annotations

from pathlib import Path

import click
from jackfield.offers import DownloadError

from jackfield_local.model_file import QWEN, default_path, download


@click.group()
def model() -> None:
    """Manage the language model of the local agent, which needs no key."""


@model.command()
@click.option(
    "--to",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The file to write (default: in your cache folder).",
)
def get(to: Path | None) -> None:
    """Download the model: 1.1 GB in 22 parts, joined and verified by hash."""
    target = to or default_path(QWEN)
    if target.exists():
        click.echo(f"{target} already exists.")
        return
    click.echo(f"Downloading {QWEN.name} ({QWEN.size // 10**6} MB) to {target}")
    try:
        with click.progressbar(length=QWEN.size, show_eta=True) as bar:
            download(QWEN, target, bar.update)
    except DownloadError as error:
        raise click.ClickException(str(error)) from None
    if to is None:
        click.echo("The local agent uses it in every new conversation.")
    else:
        click.echo(f'To use it, set [transports.local] model_path = "{target.resolve()}"')
