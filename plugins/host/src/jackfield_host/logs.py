"""The log: one line for each record on standard error, as text or as JSON, without secrets.

Tokens, keys and passwords are redacted in every record: those recognised by their form, and
those in the environment.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from jackfield_host.settings import HostSettings

REDACTED = "***"

_NAMES = r"(?:token|key|secret|password|passwd|authorization|signature|credential)s?"

_START = r"(?:(?<![\w-])|(?<=%[0-9A-Fa-f]{2}))"
"""The start of a word, also after a character that is escaped in a URL."""

_PATTERNS = tuple(
    (re.compile(pattern, re.ASCII), shown)
    for pattern, shown in (
        # Authorization: Bearer x, and Basic x
        (r"(?i)\b(bearer|basic)(\s+|%20)[\w.~+/=%-]{6,}", rf"\1 {REDACTED}"),
        # API keys of the host, whose name may be shown
        (r"(?i)jf_([a-z0-9-]{1,32})_[\w-]+", rf"jf_\1_{REDACTED}"),
        # a token among the subprotocols of a WebSocket
        (r"(?i)jackfield\.token\.[\w=%-]+", f"jackfield.token.{REDACTED}"),
        # API keys of providers
        (rf"{_START}(sk|rk|pk)-[\w-]{{8,}}", rf"\1-{REDACTED}"),
        (r"AIza[\w-]{16,}", f"AIza{REDACTED}"),
        # JSON Web Tokens, signed or not
        (rf"{_START}ey[\w-]{{8,}}\.[\w-]*(?:\.[\w-]*)*", REDACTED),
        # a named value in a URL, a form or a line of settings
        (rf"(?i)({_NAMES}(?:=|%3D))[^\s&;,\"'#<>)\]}}]+", rf"\1{REDACTED}"),
        # the same in JSON and in the repr of a mapping
        (rf"(?i)([\"'][\w-]{{0,40}}{_NAMES}[\"']\s*:\s*b?([\"']))(?:\\.|(?!\2).)*", rf"\1{REDACTED}"),
        # a token in the path of a URL
        (r"(?i)(/confirmations/)[^\s/?#\"']+", rf"\1{REDACTED}"),
    )
)

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
"""The attributes of every record; the others come from `extra`."""

_SECRET_SETTING = re.compile(rf"(?i)(?:^|_)(?:{_NAMES}|digest)$")
"""The names of settings that hold a secret; `api_key_env` and `key_file` only say where one is."""

_SECRET_VARIABLE = re.compile(r"(?i)(key|token|secret|password|credentials?)$")
"""The names of environment variables that hold a secret."""

_VARIABLE_SETTING = re.compile(r"_(variable|env)$")
"""The names of settings that name an environment variable with a secret."""

_USERINFO = re.compile(r"(//)[^/@\s]+@")
"""The user name and password in a URL."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

LOGGERS = ("", "uvicorn", "uvicorn.error", "uvicorn.access")


def configure_logging(
    options: HostSettings, tables: Mapping[str, Any], environ: Mapping[str, str], *, worker: int = 0
) -> None:
    """Configure the log of this process; `tables` are the settings, which may name variables with secrets.

    `worker` is the number of this process if several serve a port together.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if options.log_format == "json" else TextFormatter())
    handler.addFilter(_LibraryFilter(options))
    if worker:
        handler.addFilter(_WorkerFilter(worker))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(options.log_level.upper())
    install_redaction(secrets(tables, environ))


def secrets(tables: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Return the values of the environment that must not appear in the log."""
    named = set(_named_variables(tables))
    return [
        value for name, value in environ.items() if value and (name in named or _SECRET_VARIABLE.search(name))
    ]


def _named_variables(tables: Mapping[str, Any]) -> Iterator[str]:
    for name, value in tables.items():
        if isinstance(value, Mapping):
            yield from _named_variables(value)
        elif isinstance(value, str) and _VARIABLE_SETTING.search(name):
            yield value


class _LibraryFilter(logging.Filter):
    """Drops library records below level `warning`, except at `debug`; keeps request records if enabled."""

    def __init__(self, options: HostSettings) -> None:
        super().__init__()
        self._everything = options.log_level == "debug"
        self._requests = options.access_log

    def filter(self, record: logging.LogRecord) -> bool:
        if self._everything or record.levelno >= logging.WARNING or record.name.startswith("jackfield"):
            return True
        # uvicorn logs requests with a separate logger, but WebSockets with its general one.
        return self._requests and (record.name == "uvicorn.access" or '"WebSocket ' in str(record.msg))


class _WorkerFilter(logging.Filter):
    """Adds the number of the worker to every record."""

    def __init__(self, worker: int) -> None:
        super().__init__()
        self._worker = worker

    def filter(self, record: logging.LogRecord) -> bool:
        record.worker = self._worker
        return True


class TextFormatter(logging.Formatter):
    """One line with the time, the level and the message; a traceback follows on separate lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")
        worker = f"worker {record.worker}: " if hasattr(record, "worker") else ""
        line = f"{at}Z {record.levelname.lower():7} {worker}{escape_controls(record.getMessage())}"
        text = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        return f"{line}\n{text}" if text else line


class JsonFormatter(logging.Formatter):
    """One JSON object on a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        members: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        left_out = _STANDARD | {"color_message"}
        members |= {name: value for name, value in record.__dict__.items() if name not in left_out}
        if record.exc_text or record.exc_info:
            members["traceback"] = record.exc_text or self.formatException(
                record.exc_info or (None, None, None)
            )
        return orjson.dumps(members, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def escape_controls(text: str) -> str:
    """Escape control characters, so that a text stays on its line and cannot control a terminal."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Remove secrets from a text: those recognised by their form, and those given."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    for pattern, shown in _PATTERNS:
        text = pattern.sub(shown, text)
    return text


def redact_setting(name: str, value: Any) -> Any:
    """Return the value of a setting without secrets, including nested tables and lists."""
    if isinstance(value, Mapping):
        return {key: redact_setting(str(key), each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_setting(name, each) for each in value]
    if not isinstance(value, str) or not value:
        return value
    if _SECRET_SETTING.search(name):
        return REDACTED
    return _USERINFO.sub(rf"\1{REDACTED}@", redact(value))


class RedactionFilter(logging.Filter):
    """Removes secrets from records: message, arguments, traceback and extras."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        # Short values are ordinary words rather than secrets. The longest come first, because one may
        # contain another.
        self._secrets = sorted({secret for secret in secrets if len(secret) >= 8}, key=len, reverse=True)

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact a record, and let it through."""
        self._redact_message(record)
        if record.exc_info and record.exc_info[0] and not record.exc_text:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        for name in ("exc_text", "stack_info"):
            if text := getattr(record, name):
                setattr(record, name, self._redact(text))
        for name in record.__dict__.keys() - _STANDARD:
            setattr(record, name, self._redact_value(record.__dict__[name]))
        return True

    def _redact(self, text: str) -> str:
        return redact(text, self._secrets)

    def _redact_message(self, record: logging.LogRecord) -> None:
        # The arguments stay separate if possible, because the formatter of uvicorn's access log reads them.
        if isinstance(record.args, dict):
            record.args = {name: self._redact_value(value) for name, value in record.args.items()}
        elif record.args:
            record.args = tuple(self._redact_value(value) for value in record.args)
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            # The handler reports arguments that do not match their message.
            record.msg = self._redact(str(record.msg))
            return
        clean = self._redact(message)
        if clean != message:
            record.msg, record.args = clean, ()

    def _redact_value(self, value: object) -> object:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        text = value if isinstance(value, str) else str(value)
        clean = self._redact(text)
        return value if clean == text else clean


def install_redaction(secrets: Iterable[str] = (), loggers: Iterable[str] = LOGGERS) -> RedactionFilter:
    """Add one redaction filter to every handler of these loggers."""
    redaction = RedactionFilter(secrets)
    for name in loggers:
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(redaction)
    return redaction
