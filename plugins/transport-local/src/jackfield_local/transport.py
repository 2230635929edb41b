"""The way to an agent in this process: text always, voice where its extra is installed."""

from __future__ import annotations

from jackfield.contract.context import Mode
from jackfield.offers import PluginSettings
from jackfield.transport.protocol import Connection, Opening, TransportError

from jackfield_local.mind import Mind
from jackfield_local.models import speech
from jackfield_local.options import Options, options


class LocalTransport:
    """Opens connections to one mind, which all sessions share."""

    def __init__(self, chosen: Options, mind: Mind | None = None) -> None:
        self._options = chosen
        self._mind = mind
        # Without the extra `voice` there is text alone.
        self.modes: frozenset[Mode] = frozenset(("text",) if speech.missing() else ("text", "voice"))

    @classmethod
    def from_settings(cls, settings: PluginSettings) -> LocalTransport:
        """A transport as `[transports.local]` describes it."""
        return cls(options(settings))

    def adapter(self, mode: Mode) -> str:  # noqa: ARG002 - tools are the same in both
        """The schema adapter whose declarations it wants."""
        return "local"

    async def connect(self, opening: Opening) -> Connection:
        """Open a line; `TransportError` when that fails."""
        if opening.mode not in self.modes:
            raise TransportError(
                "invalid_request_error",
                "the local agent has no voice here; run: pip install 'jackfield-transport-local[voice]'",
            )
        if self._mind is None:
            self._mind = _mind(self._options)
        dialogue = await self._mind.open(opening)
        if opening.mode == "voice":
            from jackfield_local.voice.connection import VoiceConnection

            return await VoiceConnection.open(dialogue, opening)
        from jackfield_local.text import TextConnection

        return TextConnection(dialogue)

    async def close(self) -> None:
        """Let go of what all connections share."""
        if self._mind is not None:
            await self._mind.close()
            self._mind = None


def _mind(chosen: Options) -> Mind:
    from jackfield_local.agent.mind import Agent, with_model

    return with_model(chosen) if chosen.mind == "llama" else Agent(chosen)
