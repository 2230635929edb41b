"""The settings of the host: flags of `serve`, JACKFIELD_HOST_* in the environment, `[host]` in the file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from jackfield.settings import SettingsError
from jackfield.transport.protocol import VoiceSettings
from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from jackfield_host.mistakes import meant, plainly
from jackfield_host.security.settings import AccessSettings, JwtSettings, KeySettings

PREFIX = "JACKFIELD_HOST_"

_TABLE = "__table__"
# How the table of the file is handed in beside the flags; no setting can have that name.


class HostOptions(AccessSettings, BaseSettings):
    """Everything that can be said about a host."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, env_ignore_empty=True
    )

    port: int = Field(default=8765, ge=0, le=65535, description="The port to listen on; 0 takes a free one.")
    proxies: tuple[str, ...] = Field(
        default=(), description="Addresses of proxies whose `X-Forwarded-*` headers are believed."
    )
    max_sessions: int = Field(default=1000, ge=1, description="How many sessions are held at once.")
    sessions_per_user: int = Field(default=8, ge=1, description="How many of them one user may hold.")
    start_seconds: float = Field(
        default=10.0, gt=0, description="A client has to say its first message within this."
    )
    grace_seconds: float = Field(
        default=120.0,
        ge=0,
        description="How long a conversation waits, with its model, for a client that is gone.",
    )
    idle_seconds: float = Field(
        default=1800.0, gt=0, description="A session in which nothing is said so long is closed."
    )
    session_seconds: float = Field(default=14400.0, gt=0, description="The longest that a session may last.")
    drain_seconds: float = Field(
        default=30.0,
        ge=0,
        description="How long running tools may take to finish when the host is told to stop.",
    )
    message_bytes: int = Field(
        default=65536, ge=1024, description="The longest message or frame of sound of a client."
    )
    request_bytes: int = Field(default=262144, ge=1024, description="The longest body of an HTTP request.")
    queue_bytes: int = Field(
        default=4194304,
        ge=65536,
        description="How much may wait for a slow client; beyond it the client is let go.",
    )
    messages_per_second: float = Field(
        default=10.0, gt=0, description="Messages a client may send, on average."
    )
    audio_ahead_seconds: float = Field(
        default=10.0, gt=0, description="How much faster than it is spoken sound may come, in all."
    )
    requests_per_minute: float = Field(
        default=600.0, gt=0, description="HTTP requests and handshakes of one user."
    )
    dead_air_seconds: float = Field(
        default=4.0,
        gt=0,
        description="After so long without a word from a tool, the user is shown that it still works, and "
        "in voice hears one short sentence.",
    )
    prune_seconds: float = Field(
        default=3600.0, gt=0, description="How often the store is cleared of what has expired."
    )
    voice: str | None = Field(
        default=None, description="The voice of the assistant, by the provider's name for it."
    )
    language: str | None = Field(default=None, description="The language that is spoken, as in BCP 47.")
    silence_ms: int = Field(default=500, ge=100, le=5000, description="So much silence ends a user's turn.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="How much the host writes to its log."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="Whether a line of the log is for people or for machines."
    )
    access_log: bool = Field(default=False, description="Whether every request has a line in the log.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - ours takes lists without brackets too
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags win over the environment, the environment over the file."""
        given: dict[str, Any] = getattr(init_settings, "init_kwargs", {})
        table: Mapping[str, Any] = given.pop(_TABLE, {})
        flags = InitSettingsSource(settings_cls, given)
        return flags, _Environment(settings_cls), InitSettingsSource(settings_cls, dict(table))

    @classmethod
    def load(cls, table: Mapping[str, Any], **flags: Any) -> HostOptions:
        """The options of this process; flags that are None were not given."""
        wrong = _misspelt_variables(os.environ)
        try:
            options = cls._made(table, flags)
        except ValidationError as error:
            wrong += _explained(error)
        if wrong:
            raise SettingsError("\n".join(wrong))
        return options

    @classmethod
    def as_far_as_right(cls, table: Mapping[str, Any], **flags: Any) -> HostOptions | None:
        """The options without those that are wrong; nothing where that leaves open who may come in."""
        try:
            return cls._made(table, flags)
        except ValidationError as error:
            wrong = {str(each["loc"][0]) for each in error.errors(include_url=False, include_input=False)}
        if wrong & AccessSettings.model_fields.keys():
            return None
        # As flags, because it may be a variable that is wrong.
        defaults = {name: cls.model_fields[name].default for name in wrong & cls.model_fields.keys()}
        return cls._made({name: table[name] for name in table.keys() - wrong}, {**flags, **defaults})

    @classmethod
    def _made(cls, table: Mapping[str, Any], flags: Mapping[str, Any]) -> HostOptions:
        given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
        given[_TABLE] = table
        return cls(**given)

    @property
    def spoken(self) -> VoiceSettings:
        """How the model listens and speaks."""
        return VoiceSettings(self.voice, self.language, self.silence_ms)


class _Environment(EnvSettingsSource):
    """Variables as people write them: a list is JSON, or names between commas."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """What a variable says of a setting that is not a single value."""
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError:
            # What is neither is told by the check of the setting itself, like every other mistake.
            return [part.strip() for part in str(value).split(",") if part.strip()]


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def variables_of(name: str, environ: Mapping[str, str]) -> list[str]:
    """The variables that say something about a setting: its own, and those of its members."""
    own = variable(name)
    return [each for each in environ if each.upper() == own or each.upper().startswith(f"{own}__")]


def _misspelt_variables(environ: Mapping[str, str]) -> list[str]:
    known = [variable(name) for name in HostOptions.model_fields]
    given = [name for name in environ if name.upper().startswith(PREFIX)]
    return [
        f"{name}: there is no such setting; {meant(name.upper().partition('__')[0], known)}"
        for name in sorted(given)
        if name.upper().partition("__")[0] not in known
    ]


def _explained(error: ValidationError) -> list[str]:
    """What is wrong and where, without the values: one may be a secret."""
    return [
        _sentence([str(step) for step in each["loc"]], each["type"], plainly(each))
        for each in error.errors(include_url=False, include_input=False)
    ]


def _sentence(where: list[str], kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        *tables, name = where
        return f"[{'.'.join(['host', *tables])}] there is no setting {name!r}; {meant(name, _known(tables))}"
    if where and where[-1] == "[key]":
        where = where[:-1]
    named = variables_of(where[0], os.environ) if where else []
    place = named[0] if named else f"[host] {'.'.join(where)}".rstrip()
    return f"{place}: {message}"


def _known(tables: list[str]) -> Iterable[str]:
    """The settings of the table that a misspelt one stands in."""
    if not tables:
        return HostOptions.model_fields
    return (KeySettings if tables[0] == "keys" else JwtSettings).model_fields
