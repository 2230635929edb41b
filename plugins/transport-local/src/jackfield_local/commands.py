"""`jackfield model`: the language model's file, fetched once."""

from __future__ import annotations

from pathlib import Path

import click

from jackfield_local.models import weights


@click.group()
def model() -> None:
    """The language model of the local agent, which runs without a key."""


@model.command()
@click.option("--to", metavar="FILE", type=click.Path(path_type=Path), help="Where to put it.")
def get(to: Path | None) -> None:
    """Fetch the model: 1.1 GB, in 22 parts, joined and checked by its hash."""
    target = to or weights.located()
    if target.exists():
        click.echo(f"{target} is there already.")
        return
    click.echo(f"Fetching {weights.NAME} ({weights.SIZE // 10**6} MB) to {target}")
    try:
        with click.progressbar(length=weights.SIZE, show_eta=True, width=0) as bar:
            weights.fetch(target, bar.update)
    except weights.WeightsError as error:
        raise click.ClickException(str(error)) from None
    click.echo(
        'It is used with: [transports.local] mind = "llama"' + (f', model_path = "{to}"' if to else "")
    )


@model.command()
def show() -> None:
    """Say whether the model is here, and where."""
    path = weights.located()
    click.echo(f"{path}: {'there' if path.exists() else 'not there; fetch it with `jackfield model get`'}")
