"""What a model over plain requests cannot play: there is no sound, and no connection that lasts."""

from __future__ import annotations

from typing import NoReturn

from jackfield_testkit.providers.model import Heard, NotOnThisProtocolError, ScriptedModel


class RequestModel(ScriptedModel):
    """The side of a scripted model that is the same wherever every turn is a request."""

    async def hears_speech(self, transcript: str, *, after_ms: int = 200) -> Heard:  # noqa: ARG002
        """There is no sound."""
        _voice_only()

    async def speaks(self, text: str, *, ms: int) -> None:  # noqa: ARG002
        """There is no sound."""
        _voice_only()

    async def ends_speaking(self) -> None:
        """There is no sound."""
        _voice_only()

    async def is_interrupted(self) -> None:
        """There is no sound."""
        _voice_only()

    async def truncated(self) -> int:
        """There is no sound."""
        _voice_only()

    async def cancels(self, *ids: str) -> None:  # noqa: ARG002
        """There is no such message."""
        raise NotOnThisProtocolError("a request cannot take calls back; use calls(..., taken_back=True)")

    async def goes_away(self, seconds: float) -> None:  # noqa: ARG002
        """There is no such message."""
        raise NotOnThisProtocolError("requests have no lasting connection that could end")


def _voice_only() -> NoReturn:
    raise NotOnThisProtocolError("requests carry no sound; this step is for voice")
