"""The command `jackfield model`, which downloads and checks the language model's file."""

from __future__ import annotations

from pathlib import Path

import click
from jackfield.offers import DownloadError

from jackfield_local.model_file import QWEN, default_path, download, sha256_of


@click.group()
def model() -> None:
    """Manage the language model of the local agent, which needs no key."""


@model.command()
@click.option("--to", metavar="FILE", type=click.Path(path_type=Path), help="Where to put it.")
def get(to: Path | None) -> None:
    """Download the model: 1.1 GB in 22 parts, joined and checked by its hash."""
    target = to or default_path(QWEN)
    if target.exists():
        click.echo(f"{target} exists already; `jackfield model show` checks it.")
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


@model.command()
@click.option("--at", metavar="FILE", type=click.Path(path_type=Path), help="Where it is.")
def show(at: Path | None) -> None:
    """Show where the model is, and whether it is the right one."""
    path = at or default_path(QWEN)
    if not path.is_file():
        raise click.ClickException(f"{path} does not exist; run: jackfield model get")
    if sha256_of(path) != QWEN.sha256:
        raise click.ClickException(f"{path} is not {QWEN.name}: its SHA-256 is different")
    click.echo(f"{path}: {QWEN.name}, SHA-256 {QWEN.sha256}")
