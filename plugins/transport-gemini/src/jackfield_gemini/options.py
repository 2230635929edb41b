"""What a deployment may say in `[transports.gemini]`."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from jackfield.offers import PluginSettings
from jackfield.settings import SettingsError
from jackfield.transport.protocol import TransportError

KEY_VARIABLE = "GEMINI_API_KEY"
OTHER_KEY_VARIABLE = "GOOGLE_API_KEY"
"""Google's older name for the same key; read when the first one is empty and none is named."""


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of one deployment, checked."""

    api_key_env: str = KEY_VARIABLE
    """The environment variable that holds the key."""

    base_url: str | None = None
    """Another address than Google's own, such as that of a proxy."""

    api_version: str | None = None
    """`v1`, `v1beta` or `v1alpha`; left out, what the SDK takes."""

    text_model: str = "gemini-3.8-flash"
    voice_model: str = "gemini-3.8-live"

    voice: str | None = None
    """The voice of sessions that name none."""

    language: str | None = None
    """The language, as in BCP 47, of sessions that name none."""

    adapter: str = "gemini-json-schema"
    """The schema adapter whose declarations are sent."""

    calls: str = "blocking"
    """Whether the model waits for its calls in a voice session, or goes on talking: `non_blocking`."""

    scheduling: str = "when_idle"
    """When the model takes up a result that it did not wait for: `when_idle`, `interrupt`, `silent`."""

    connect_timeout: float = 10.0
    """Seconds until a voice session has to stand."""

    request_timeout: float = 120.0
    """Seconds that a text answer may stay silent."""

    ca_file: str | None = None
    """Certificates to trust instead of the usual ones, for a proxy with a certificate of its own."""

    def found_key(self, environ: Mapping[str, str] = os.environ) -> tuple[str, str]:
        """The variable that holds the key, and the key; where none does, the first variable and nothing."""
        variables = [self.api_key_env]
        if self.api_key_env == KEY_VARIABLE:
            variables.append(OTHER_KEY_VARIABLE)
        found = ((variable, environ.get(variable, "").strip()) for variable in variables)
        return next(((variable, key) for variable, key in found if key), (self.api_key_env, ""))

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """The key; `TransportError` when there is none."""
        _, key = self.found_key(environ)
        if not key:
            raise TransportError(
                "authentication",
                f"the environment variable {self.api_key_env} is empty; it has to hold a Gemini key",
            )
        return key

    def trusted(self) -> ssl.SSLContext | None:
        """The certificates of `ca_file`; what they do not vouch for is never spoken to."""
        if self.ca_file is None:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"[transports.gemini] ca_file: {self.ca_file} holds no certificates that can be read: {error}"
            ) from None


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "adapter": ("gemini-json-schema", "gemini-native"),
    "calls": ("blocking", "non_blocking"),
    "scheduling": ("when_idle", "interrupt", "silent"),
    "api_version": ("v1", "v1beta", "v1alpha"),
}


def options(settings: PluginSettings) -> Options:
    """The settings, or `SettingsError` with a sentence about the first that cannot be used."""
    names = [field.name for field in fields(Options)]
    for name, value in settings.items():
        if name not in names:
            close = get_close_matches(name, names, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
            raise SettingsError(f"[transports.gemini] has no setting {name!r}; {meant}")
        _CHECKS.get(name, _text)(name, value)
    return Options(**{name: value for name, value in settings.items() if value != ""})


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise SettingsError(f"[transports.gemini] {name} is a text, not {value!r}")
    choices = _CHOICES.get(name)
    if choices and value not in choices:
        raise SettingsError(f"[transports.gemini] {name} is {value!r}; it is one of {', '.join(choices)}")


def _seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 3600:
        raise SettingsError(f"[transports.gemini] {name} is a number of seconds up to 3600, not {value!r}")


def _address(name: str, value: Any) -> None:
    _text(name, value)
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise SettingsError(f'[transports.gemini] {name} is an address such as "https://...", not {value!r}')


def _variable(name: str, value: Any) -> None:
    _text(name, value)
    if value.startswith("AIza") or not value.isidentifier():
        raise SettingsError(
            f"[transports.gemini] {name} is the name of an environment variable, such as {KEY_VARIABLE};"
            " the key itself belongs into that variable"
        )


_CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    "api_key_env": _variable,
    "base_url": _address,
    "connect_timeout": _seconds,
    "request_timeout": _seconds,
}
