"""Secrets are kept out of the log: tokens, keys and passwords are hidden in every record."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "***"

_NAMES = r"(?:token|key|secret|password|passwd|authorization|signature|credential)s?"

_START = r"(?:(?<![\w-])|(?<=%[0-9A-Fa-f]{2}))"
"""The start of a word, also after a character that an address has escaped."""

_PATTERNS = tuple(
    (re.compile(pattern, re.ASCII), shown)
    for pattern, shown in (
        # Authorization: Bearer x, and Basic x
        (r"(?i)\b(bearer|basic)(\s+|%20)[\w.~+/=%-]{6,}", rf"\1 {HIDDEN}"),
        # our own keys, of which the name may be told
        (r"(?i)jf_([a-z0-9-]{1,32})_[\w-]+", rf"jf_\1_{HIDDEN}"),
        # a token among the subprotocols of a WebSocket
        (r"(?i)jackfield\.token\.[\w=%-]+", f"jackfield.token.{HIDDEN}"),
        # keys of providers
        (rf"{_START}(sk|rk|pk)-[\w-]{{8,}}", rf"\1-{HIDDEN}"),
        (r"AIza[\w-]{16,}", f"AIza{HIDDEN}"),
        # JSON Web Tokens, signed or not
        (rf"{_START}ey[\w-]{{8,}}\.[\w-]*(?:\.[\w-]*)*", HIDDEN),
        # a named value in an address, a form or a line of settings
        (rf"(?i)({_NAMES}(?:=|%3D))[^\s&;,\"'#<>)\]}}]+", rf"\1{HIDDEN}"),
        # the same in JSON and in the repr of a mapping
        (rf"(?i)([\"'][\w-]{{0,40}}{_NAMES}[\"']\s*:\s*b?([\"']))(?:\\.|(?!\2).)*", rf"\1{HIDDEN}"),
        # what stands in the path of an address and is a token
        (r"(?i)(/confirmations/)[^\s/?#\"']+", rf"\1{HIDDEN}"),
    )
)

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
"""What every record has; the rest was given by `extra`."""

_SECRET_SETTING = re.compile(rf"(?i)(?:^|_)(?:{_NAMES}|digest)$")
"""Settings that are called so hold a secret; `api_key_env` and `key_file` only say where one is."""

_USERINFO = re.compile(r"(//)[^/@\s]+@")
"""The name and password in an address."""

LOGGERS = ("", "uvicorn", "uvicorn.error", "uvicorn.access")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """A text without its secrets: those that look like one, and those that are given."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    for pattern, shown in _PATTERNS:
        text = pattern.sub(shown, text)
    return text


def hidden(name: str, value: Any) -> Any:
    """A setting as it may be shown: without secrets in it, or in the tables and lists that it holds."""
    if isinstance(value, Mapping):
        return {key: hidden(str(key), each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [hidden(name, each) for each in value]
    if not isinstance(value, str) or not value:
        return value
    if _SECRET_SETTING.search(name):
        return HIDDEN
    return _USERINFO.sub(rf"\1{HIDDEN}@", redact(value))


class Redaction(logging.Filter):
    """Hides secrets in records: message, arguments, traceback and extras."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        # Short ones are words of the log rather than secrets; a long one may contain another.
        self._secrets = sorted({secret for secret in secrets if len(secret) >= 8}, key=len, reverse=True)

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through, without what it must not tell."""
        self._clean_message(record)
        if record.exc_info and record.exc_info[0] and not record.exc_text:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        for name in ("exc_text", "stack_info"):
            if text := getattr(record, name):
                setattr(record, name, self._redact(text))
        for name in record.__dict__.keys() - _STANDARD:
            setattr(record, name, self._cleaned(record.__dict__[name]))
        return True

    def _redact(self, text: str) -> str:
        return redact(text, self._secrets)

    def _clean_message(self, record: logging.LogRecord) -> None:
        # The arguments stay apart where they can: the formatter of uvicorn's access log reads them.
        if isinstance(record.args, dict):
            record.args = {name: self._cleaned(value) for name, value in record.args.items()}
        elif record.args:
            record.args = tuple(self._cleaned(value) for value in record.args)
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            # The handler will complain of arguments that do not fit their message.
            record.msg = self._redact(str(record.msg))
            return
        clean = self._redact(message)
        if clean != message:
            record.msg, record.args = clean, ()

    def _cleaned(self, value: object) -> object:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        text = value if isinstance(value, str) else str(value)
        clean = self._redact(text)
        return value if clean == text else clean


def hide_secrets(secrets: Iterable[str] = (), loggers: Iterable[str] = LOGGERS) -> Redaction:
    """Put one redaction on every handler of these loggers, after they were set up."""
    redaction = Redaction(secrets)
    for name in loggers:
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(redaction)
    return redaction
