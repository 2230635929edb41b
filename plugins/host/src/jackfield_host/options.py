"""The settings of the host: flags of `serve`, JACKFIELD_HOST_* in the environment, `[host]` in the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from jackfield.settings import SettingsError
from jackfield.transport.protocol import VoiceSettings
from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from jackfield_host.security.settings import AccessSettings

PREFIX = "JACKFIELD_HOST_"

_TABLE = "__table__"
# How the table of the file is handed in beside the flags; no setting can have that name.


class HostOptions(AccessSettings, BaseSettings):
    """Everything that can be said about a host."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, env_ignore_empty=True
    )

    port: int = Field(8765, ge=0, le=65535, description="The port to listen on; 0 takes a free one.")
    proxies: tuple[str, ...] = Field(
        default=(), description="Addresses of proxies whose `X-Forwarded-*` headers are believed."
    )
    max_sessions: int = Field(1000, ge=1, description="How many sessions are held at once.")
    sessions_per_user: int = Field(8, ge=1, description="How many of them one user may hold.")
    start_seconds: float = Field(10.0, gt=0, description="A client has to say its first message within this.")
    grace_seconds: float = Field(
        120.0, ge=0, description="How long a conversation waits, with its model, for a client that is gone."
    )
    idle_seconds: float = Field(
        1800.0, gt=0, description="A session in which nothing is said so long is closed."
    )
    session_seconds: float = Field(14400.0, gt=0, description="The longest that a session may last.")
    drain_seconds: float = Field(
        30.0, ge=0, description="How long running tools may take to finish when the host is told to stop."
    )
    message_bytes: int = Field(
        65536, ge=1024, description="The longest message or frame of sound of a client."
    )
    request_bytes: int = Field(262144, ge=1024, description="The longest body of an HTTP request.")
    queue_bytes: int = Field(
        4194304, ge=65536, description="How much may wait for a slow client; beyond it the client is let go."
    )
    messages_per_second: float = Field(10.0, gt=0, description="Messages a client may send, on average.")
    audio_ahead_seconds: float = Field(
        10.0, gt=0, description="How much faster than it is spoken sound may come, in all."
    )
    requests_per_minute: float = Field(600.0, gt=0, description="HTTP requests and handshakes of one user.")
    dead_air_seconds: float = Field(
        4.0,
        gt=0,
        description="After so long without a word from a tool, the user is told that it still works.",
    )
    prune_seconds: float = Field(
        3600.0, gt=0, description="How often the store is cleared of what has expired."
    )
    voice: str | None = Field(None, description="The voice of the assistant, by the provider's name for it.")
    language: str | None = Field(None, description="The language that is spoken, as in BCP 47.")
    silence_ms: int = Field(500, ge=100, le=5000, description="So much silence ends a user's turn.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="How much the host writes to its log."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags win over the environment, the environment over the file."""
        given: dict[str, Any] = getattr(init_settings, "init_kwargs", {})
        table: Mapping[str, Any] = given.pop(_TABLE, {})
        flags = InitSettingsSource(settings_cls, given)
        return flags, env_settings, InitSettingsSource(settings_cls, dict(table))

    @classmethod
    def load(cls, table: Mapping[str, Any], **flags: Any) -> HostOptions:
        """The options of this process; flags that are None were not given."""
        given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
        given[_TABLE] = table
        try:
            return cls(**given)
        except ValidationError as error:
            raise SettingsError(_explained(error)) from None

    @property
    def spoken(self) -> VoiceSettings:
        """How the model listens and speaks."""
        return VoiceSettings(self.voice, self.language, self.silence_ms)


def _explained(error: ValidationError) -> str:
    """What is wrong and where, without the value: it may be a secret."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"[host] {where}: {first['msg']}" if where else f"[host]: {first['msg']}"
