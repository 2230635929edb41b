"""The JSON bodies of HTTP requests."""

from __future__ import annotations

from typing import Annotated, Any

from jackfield.datetimes import is_zone, nearest_zone
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

UNKNOWN_ZONE = "Etc/Unknown"
"""The time zone that a browser sends if it does not know its own."""


def check_time_zone(name: str) -> str:
    """Return the name of a time zone if it exists; raise a `ValueError` that suggests one otherwise."""
    if name != UNKNOWN_ZONE and not is_zone(name):
        close = nearest_zone(name)
        hint = f"did you mean {close!r}?" if close else "use a name such as Europe/Berlin"
        raise ValueError(f"there is no such time zone; {hint}")
    return name


TimeZone = Annotated[str, Field(max_length=64), AfterValidator(check_time_zone)]
"""The name of a time zone that exists."""


class RequestBody(BaseModel):
    """The body of a request; unknown members are rejected."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class ChatBody(RequestBody):
    """A message from the user."""

    message: str = Field(min_length=1, max_length=8000)
    time_zone: TimeZone | None = Field(None, description="The user's time zone, such as `Europe/Berlin`.")
    language: str | None = Field(None, max_length=35, description="The user's language, as a BCP 47 tag.")


SDP_OFFER = r"^v=0\r?\n([\s\S]*\n)?m=audio "
"""The form of a session description with audio (RFC 8866); the provider parses the rest of it."""


class SdpOfferBody(RequestBody):
    """A browser's offer for a WebRTC call to the provider."""

    sdp: str = Field(
        max_length=65536,
        description="The offer of the browser's peer connection.",
        json_schema_extra={"pattern": SDP_OFFER},
    )
    session_id: str = Field(
        alias="session_id",
        pattern="^[0-9a-f]{32}$",
        description="The session that `GET /session` has prepared.",
    )


class ExecuteBody(RequestBody):
    """The arguments of a tool call."""

    arguments: dict[str, Any] = Field(
        default_factory=dict, description="The arguments, as the tool's parameters describe them."
    )
    call_id: str | None = Field(
        None,
        alias="call_id",
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="The id of the call; the header `Idempotency-Key` has the same effect.",
    )


class TitleBody(RequestBody):
    """The title of a conversation."""

    title: str = Field(min_length=1, max_length=200, pattern=r"\S")


class DecisionBody(RequestBody):
    """The user's decision on a call that is waiting for confirmation."""

    approve: bool


class DownloadBody(RequestBody):
    """The download to start."""

    name: str = Field(min_length=1, max_length=100, description="The name that `GET /downloads` lists.")


class SettleBody(RequestBody):
    """An operator's finding about a call in doubt."""

    model_config = ConfigDict(
        json_schema_extra={"dependentSchemas": {"data": {"properties": {"ran": {"const": True}}}}}
    )

    key: str = Field(min_length=1, max_length=1024, description="The key that `GET /calls` lists.")
    ran: bool = Field(description="True if the call took effect.")
    data: Any = Field(None, description="The result, as the tool would have returned it; only with `ran`.")

    @field_validator("data")
    @classmethod
    def _check_data(cls, data: Any, info: ValidationInfo) -> Any:
        if info.data.get("ran") is False:
            raise ValueError("a call that did not run has no result")
        return data
