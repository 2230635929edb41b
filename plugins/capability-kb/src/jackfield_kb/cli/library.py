"""Opens the configured library for a command, and turns Ctrl-C into a request to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import click
from jackfield.settings import Settings, SettingsError, parse_settings
from jackfield_cli.terminal import echo

if TYPE_CHECKING:
    from jackfield_kb.library import Library

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """Turns the first Ctrl-C or SIGTERM into a request to stop; the second one ends the process."""

    def __init__(self) -> None:
        self._asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __call__(self) -> bool:
        """Return whether a stop was requested."""
        return self._asked

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a handler
        self._asked = True
        self._restore()

    def _restore(self) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)


def _notice(line: str) -> None:
    echo(click.style(line, dim=True), err=True)


@contextmanager
def opened(settings: Settings) -> Iterator[Library]:
    """Open the library; a library error or an invalid setting ends the command without a traceback."""
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
    """Rebuild a missing index now, because a single search cannot wait for a background rebuild."""
    states = library.stats().indexes
    missing = [name for name, state in states.items() if state == "missing"]
    if library.is_shared and any("behind" in state for state in states.values()):
        # Perhaps no process on this machine has followed what other hosts loaded.
        library.refresh()
        return
    if not missing:
        return
    from jackfield_kb.cli.terminal import progress_reporter

    _notice(f"rebuilding from the records, because an index is missing: {', '.join(missing)}")
    with progress_reporter(as_json=as_json) as listener:
        library.refresh(listener.indexed)
