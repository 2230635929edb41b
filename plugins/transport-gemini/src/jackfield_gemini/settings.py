"""The settings of the transport: `[transports.gemini]`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from jackfield.settings import Format, Gt, Help, HttpUrl, Le, NonEmpty, Secret, SettingsError, Unit
from jackfield.transport.protocol import TransportError

if TYPE_CHECKING:
    import ssl

KEY_VARIABLE = "GEMINI_API_KEY"
OTHER_KEY_VARIABLE = "GOOGLE_API_KEY"
"""Google's older variable for the same key; read if the first one is empty and none is configured."""


def _variable(value: str) -> str:
    # A Google key may look like a name.
    if value.startswith("AIza") or not value.isidentifier():
        raise ValueError
    return value


Variable = Annotated[
    str,
    Format(
        f"the name of an environment variable, such as {KEY_VARIABLE}; the key itself belongs in that "
        "variable",
        _variable,
    ),
    Secret(),
]
Timeout = Annotated[float, Gt(0), Le(3600), Unit("seconds")]


@dataclass(frozen=True, slots=True)
class GeminiSettings:
    """`[transports.gemini]`"""

    api_key_env: Annotated[
        Variable,
        Help(
            f"The environment variable that holds the key. Without this setting, `{OTHER_KEY_VARIABLE}` is "
            f"read if `{KEY_VARIABLE}` is empty."
        ),
    ] = KEY_VARIABLE
    base_url: Annotated[
        HttpUrl | None,
        Help("An address other than Google's own, such as a proxy's.", default="the SDK's"),
    ] = None
    api_version: Annotated[
        Literal["v1", "v1beta", "v1alpha"] | None,
        Help("The version of the API.", default="the SDK's"),
    ] = None
    text_model: Annotated[NonEmpty, Help("The model for text sessions.")] = "gemini-3.8-flash"
    voice_model: Annotated[NonEmpty, Help("The model for voice sessions.")] = "gemini-3.8-live"
    voice: Annotated[str | None, Help("The voice for sessions that specify none.", default="the model's")] = (
        None
    )
    language: Annotated[
        str | None,
        Help("The language, as a BCP 47 tag, for sessions that specify none.", default="the model's"),
    ] = None
    adapter: Annotated[
        Literal["gemini-json-schema", "gemini-native"],
        Help("How tools are declared: the schema adapter whose declarations are sent."),
    ] = "gemini-json-schema"
    calls: Annotated[
        Literal["blocking", "non_blocking"],
        Help(
            "What the model does during its calls in a voice session: wait (`blocking`) or continue to talk."
        ),
    ] = "blocking"
    scheduling: Annotated[
        Literal["when_idle", "interrupt", "silent"],
        Help("When the model uses a result that it did not wait for."),
    ] = "when_idle"
    connect_timeout: Annotated[Timeout, Help("How long opening a voice session may take.")] = 10.0
    request_timeout: Annotated[
        Timeout, Help("How long a text request waits for the next data before it fails.")
    ] = 120.0
    ca_file: Annotated[
        NonEmpty | None,
        Help(
            "Certificates to trust instead of the usual ones, for a proxy with its own. Verification cannot "
            "be switched off."
        ),
    ] = None

    def found_key(self, environ: Mapping[str, str] = os.environ) -> tuple[str, str]:
        """Return the variable that holds the key, and the key; the first variable and "" if none does."""
        variables = [self.api_key_env]
        if self.api_key_env == KEY_VARIABLE:
            variables.append(OTHER_KEY_VARIABLE)
        found = ((variable, environ.get(variable, "").strip()) for variable in variables)
        return next(((variable, key) for variable, key in found if key), (self.api_key_env, ""))

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the key; raises `TransportError` if there is none."""
        _, key = self.found_key(environ)
        if not key:
            raise TransportError(
                "authentication",
                f"the environment variable {self.api_key_env} is empty; set it to a Gemini key",
            )
        return key

    def trusted(self) -> ssl.SSLContext | None:
        """Return an SSL context that trusts only the certificates in `ca_file`."""
        if self.ca_file is None:
            return None
        import ssl

        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"[transports.gemini] ca_file: {self.ca_file} contains no readable certificates: {error}"
            ) from None
