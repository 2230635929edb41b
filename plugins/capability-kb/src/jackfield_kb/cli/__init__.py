"""The command `jackfield kb`.

Nothing heavy is imported before a command of it runs, so that its help answers at once.
"""

from __future__ import annotations

import click

from jackfield_kb.cli import commands

__all__ = ["kb"]


@click.group()
def kb() -> None:
    """Load documents into the knowledge base, search and look after it.

    \b
    Begin with a knowledge base of a made-up design studio:
      jackfield kb add --sample
      jackfield kb search "how do I book the photo room"
    \b
    Then load your own, and keep it in step:
      jackfield kb add handbook/ contacts.vcf
      jackfield kb add --sync handbook/

    Where it lies and how it is searched is set under [capabilities.kb] in jackfield.toml.
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
