"""`jackfield key`."""

from __future__ import annotations

import click


@click.command()
@click.argument("name")
@click.option("--user", required=True, metavar="USER", help="Whom the key stands for.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role the key gives; repeatable.")
def key(name: str, user: str, roles: tuple[str, ...]) -> None:
    """Make an API key called NAME: shown this once, and kept nowhere.

    The key goes to its user, who sends it as `Authorization: Bearer KEY`; the lines go into jackfield.toml,
    and hold what it takes to know the key again, not the key. To withdraw it, take them out and restart.
    """
    from jackfield.settings import SettingsError

    from jackfield_host.security.keys import new_key

    try:
        made = new_key(name, user, roles)
    except SettingsError as error:
        raise click.ClickException(str(error)) from None
    # What is piped into the settings file is the part that belongs there.
    click.echo(f"The key, shown this once:\n\n{made.key}\n\nAdd to jackfield.toml:\n", err=True)
    click.echo(made.lines, nl=False)
