"""The knowledge base: records with their sources, searched by words and by meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, CommandOffer, Services

if TYPE_CHECKING:
    import click

    from jackfield_kb.settings import KnowledgeSettings

__all__ = ["jackfield_capabilities", "jackfield_commands"]


@hookimpl
def jackfield_capabilities() -> list[CapabilityOffer]:
    """Offer the capability `kb`."""
    from jackfield_kb.settings import KnowledgeSettings

    return [CapabilityOffer("kb", _create, settings=KnowledgeSettings)]


@hookimpl
def jackfield_commands() -> list[CommandOffer]:
    """Offer the command `jackfield kb`."""
    return [CommandOffer("kb", "Load documents into the knowledge base, search it and maintain it.", _load)]


def _create(settings: KnowledgeSettings, services: Services) -> Any:  # noqa: ARG001
    from jackfield_kb.capability import LibraryKnowledge

    return LibraryKnowledge.from_settings(settings)


def _load() -> click.Command:
    from jackfield_kb.cli import kb

    return kb
