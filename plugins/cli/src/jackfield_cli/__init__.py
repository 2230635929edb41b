"""The command line `jackfield`.

The modules of this package import nothing heavy at the top level, so that `jackfield --help` is fast.
"""

from __future__ import annotations

import click

from jackfield_cli.command_group import PluginCommandGroup


@click.group(
    cls=PluginCommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="jackfield-cli", prog_name="jackfield")
def main() -> None:
    """Build, inspect and extend a registry of tools for voice and text agents.

    Install tool packages with pip, freeze them into the registry with `jackfield build`, and list them with
    `jackfield tools`. Plugins can add commands; `jackfield plugins` shows which plugin adds each command.

    Options override environment variables such as JACKFIELD_REGISTRY and JACKFIELD_STORE, which override the
    settings file: jackfield.toml in the working directory, or the file that JACKFIELD_CONFIG names.
    """
