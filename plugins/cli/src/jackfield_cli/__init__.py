"""The command line `jackfield`.

Modules of this package import nothing heavy at the top, so that `jackfield --help` answers at once.
"""

from __future__ import annotations

import click

from jackfield_cli import authoring, building, calling, calls, showing, store
from jackfield_cli.offered import OfferedCommands


@click.group(
    cls=OfferedCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="jackfield-cli", prog_name="jackfield")
def main() -> None:
    """Build, inspect and extend a registry of tools for voice and text agents.

    Install tool packages with pip, freeze them with `jackfield build`, see them with `jackfield tools`.
    Plugins add commands of their own; `jackfield plugins` says which come from whom.

    Settings come from options, then from JACKFIELD_ALLOW, JACKFIELD_DENY, JACKFIELD_REGISTRY,
    JACKFIELD_DEPLOYMENT, JACKFIELD_STORE, JACKFIELD_PROVIDER and JACKFIELD_PROMPTS, then from jackfield.toml
    or the file that JACKFIELD_CONFIG names.
    """


for command in (
    building.build,
    building.check,
    building.diff,
    showing.tools,
    showing.describe,
    showing.plugins,
    calling.call,
    calls.calls,
    store.store,
    authoring.new_tool,
    authoring.validate,
    authoring.schema,
):
    main.add_command(command)
