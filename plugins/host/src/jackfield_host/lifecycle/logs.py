"""The log: one line a record, to standard error, for people or for machines, without secrets."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from jackfield_host.security.redaction import hide_secrets
from jackfield_host.settings import HostSettings

_SECRET = re.compile(r"(?i)(key|token|secret|password|credentials?)$")
"""Variables of the environment that are called so hold what must not be told."""

_NAMING = re.compile(r"_(variable|env)$")
"""Settings that are called so name a variable that does."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "color_message"}


def set_up(options: HostSettings, tables: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Write the log of this process as the options say; `tables` may name variables that hold secrets."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Machines() if options.log_format == "json" else People())
    handler.addFilter(_Ours(options))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(options.log_level.upper())
    hide_secrets(secrets(tables, environ))


def secrets(tables: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """What the environment holds that must not be told."""
    named = set(_named(tables))
    return [value for name, value in environ.items() if value and (name in named or _SECRET.search(name))]


def _named(tables: Mapping[str, Any]) -> Iterator[str]:
    for name, value in tables.items():
        if isinstance(value, Mapping):
            yield from _named(value)
        elif isinstance(value, str) and _NAMING.search(name):
            yield value


class _Ours(logging.Filter):
    """Libraries are heard when something is wrong, or when everything is to be heard."""

    def __init__(self, options: HostSettings) -> None:
        super().__init__()
        self._everything = options.log_level == "debug"
        self._requests = options.access_log

    def filter(self, record: logging.LogRecord) -> bool:
        if self._everything or record.levelno >= logging.WARNING or record.name.startswith("jackfield"):
            return True
        # A WebSocket is told of by the server's own logger, a request by one for requests.
        return self._requests and (record.name == "uvicorn.access" or '"WebSocket ' in str(record.msg))


class People(logging.Formatter):
    """A line with the time, the level and the message; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")
        line = f"{at}Z {record.levelname.lower():7} {escaped(record.getMessage())}"
        traceback = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        return f"{line}\n{traceback}" if traceback else line


class Machines(logging.Formatter):
    """A JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        told: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        told |= {name: value for name, value in record.__dict__.items() if name not in _STANDARD}
        if record.exc_text or record.exc_info:
            told["traceback"] = record.exc_text or self.formatException(record.exc_info or (None, None, None))
        return orjson.dumps(told, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def escaped(text: str) -> str:
    """A text that stays on its line, and cannot steer the terminal it is shown on."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)
