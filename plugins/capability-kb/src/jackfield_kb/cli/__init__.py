"""The command `jackfield kb`.

Heavy modules are imported when a command runs, so that help is fast.
"""

from __future__ import annotations

import click

from jackfield_kb.cli import commands

__all__ = ["kb"]


@click.group()
def kb() -> None:
    """Load documents into the knowledge base, search it and maintain it.

    \b
    Start with the sample records of a fictional design studio:
      jackfield kb add --sample
      jackfield kb search "how do I book the photo room"
    \b
    Then load your own documents, and keep them in sync:
      jackfield kb add handbook/ contacts.vcf
      jackfield kb add --sync handbook/

    The table [capabilities.kb] in jackfield.toml sets the folder and the search options.
    """


for command in (
    commands.add,
    commands.search,
    commands.show,
    commands.stats,
    commands.rebuild,
    commands.export,
    commands.remove,
):
    kb.add_command(command)
