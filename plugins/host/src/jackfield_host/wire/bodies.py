"""What a client sends as the body of an HTTP request."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

from jackfield_host.wire.zones import TimeZone


class Body(BaseModel):
    """The body of a request: JSON, and nothing in it that is not described here."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class ChatBody(Body):
    """Something the user writes."""

    message: str = Field(min_length=1, max_length=8000)
    time_zone: TimeZone | None = Field(None, description="The user's time zone, `Europe/Berlin`.")
    language: str | None = Field(None, max_length=35, description="What the user speaks, as in BCP 47.")


OFFER = r"^v=0\r?\n([\s\S]*\n)?m=audio "
"""How a description of a peer with sound looks (RFC 8866); the provider reads the rest of it."""


class OfferBody(Body):
    """A browser's offer for a call of its own."""

    sdp: str = Field(
        max_length=65536,
        description="The offer of its peer connection.",
        json_schema_extra={"pattern": OFFER},
    )
    session_id: str = Field(
        alias="session_id",
        pattern="^[0-9a-f]{32}$",
        description="The session that `GET /session` has prepared.",
    )


class ExecuteBody(Body):
    """A call of a tool."""

    arguments: dict[str, Any] = Field(default_factory=dict, description="As the tool's parameters say.")
    call_id: str | None = Field(
        None,
        alias="call_id",
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="Names the call; the header `Idempotency-Key` does the same.",
    )


class DecisionBody(Body):
    """The user's word on a call that waits for it."""

    approve: bool


class DownloadBody(Body):
    """Which download to start."""

    name: str = Field(min_length=1, max_length=100, description="As `GET /downloads` lists it.")


class SettleBody(Body):
    """What an operator found out about a call in doubt."""

    model_config = ConfigDict(
        json_schema_extra={"dependentSchemas": {"data": {"properties": {"ran": {"const": True}}}}}
    )

    key: str = Field(min_length=1, max_length=1024, description="As `GET /calls` lists it.")
    ran: bool = Field(description="Whether the call took effect.")
    data: Any = Field(None, description="The result, as the tool would have returned it; only with `ran`.")

    @field_validator("data")
    @classmethod
    def _check_data(cls, data: Any, info: ValidationInfo) -> Any:
        if info.data.get("ran") is False:
            raise ValueError("a call that did not run has no result")
        return data
