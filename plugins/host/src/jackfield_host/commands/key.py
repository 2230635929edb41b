"""`jackfield key`."""

from __future__ import annotations

import click


@click.command()
@click.argument("name")
@click.option("--user", required=True, metavar="USER", help="The user that the key identifies.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role for the user; repeatable.")
def key(name: str, user: str, roles: tuple[str, ...]) -> None:
    """Create an API key called NAME. The key is shown only once and is not stored.

    The user sends the key as `Authorization: Bearer KEY`. Add the printed lines to jackfield.toml: they
    contain a digest of the key, not the key itself. To revoke the key, remove the lines and restart the host.
    """
    from jackfield.settings import SettingsError

    from jackfield_host.security.api_keys import new_key

    try:
        created = new_key(name, user, roles)
    except SettingsError as error:
        raise click.ClickException(str(error)) from None
    # Only the lines go to standard output, so that they can be piped into the settings file.
    click.echo(f"The key, shown only once:\n\n{created.key}\n\nAdd to jackfield.toml:\n", err=True)
    click.echo(created.lines, nl=False)
