"""The library that the settings name, for as long as a command needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from jackfield.settings import Settings, SettingsError, parse_settings
from jackfield_cli.report import echo

if TYPE_CHECKING:
    from jackfield_kb.library import Library


def _notice(line: str) -> None:
    echo(click.style(line, dim=True), err=True)


@contextmanager
def opened(settings: Settings) -> Iterator[Library]:
    """The library; a fault in it or in a setting ends the command without a traceback."""
    from jackfield_kb.errors import LibraryError
    from jackfield_kb.settings import PLACE, KnowledgeSettings, open_library

    try:
        declared = parse_settings(KnowledgeSettings, settings.table("capabilities", "kb"), PLACE)
        library = open_library(declared, _notice)
        try:
            yield library
        finally:
            library.close()
    except (LibraryError, SettingsError) as error:
        raise click.ClickException(str(error)) from None


def whole(library: Library, *, as_json: bool) -> None:
    """Make a missing index anew: whoever asks once from a shell has no later search that would gain."""
    missing = [name for name, state in library.stats().indexes.items() if state == "missing"]
    if not missing:
        return
    from jackfield_kb.cli.progress import teller

    _notice(f"no index of the {' and the '.join(missing)}: made anew from the records")
    with teller(as_json=as_json) as listener:
        library.refresh(listener.indexed)
