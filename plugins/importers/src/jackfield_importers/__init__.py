"""Generates families of tools from OpenAPI documents, FastMCP servers and LangChain tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CommandOffer

if TYPE_CHECKING:
    import click

__all__ = ["jackfield_commands"]


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """Offer the command `jackfield import`."""
    help_line = "Generate tools from an OpenAPI document, a FastMCP server or LangChain tools."
    return [CommandOffer("import", help_line, _import_command)]


def _import_command() -> click.Command:
    from jackfield_importers.commands import import_group

    return import_group
