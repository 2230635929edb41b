"""The way to an agent in this process: text always, voice where its extra is installed."""

from __future__ import annotations

from jackfield.contract.context import Mode
from jackfield.transport.protocol import Connection, ConnectionConfig, TransportError

from jackfield_local.mind import Mind
from jackfield_local.models import speech
from jackfield_local.settings import LocalSettings


class LocalTransport:
    """Opens connections to a mind, which all sessions share; with `auto`, to the best one that is here."""

    def __init__(self, settings: LocalSettings, mind: Mind | None = None) -> None:
        self._settings = settings
        self._given = mind
        self._minds: dict[bool, Mind] = {}
        # Without the extra `voice` there is text alone.
        self.modes: frozenset[Mode] = frozenset(("text",) if speech.missing() else ("text", "voice"))

    def adapter(self, mode: Mode) -> str:  # noqa: ARG002 - tools are the same in both
        """The schema adapter whose declarations it wants."""
        return "local"

    async def connect(self, opening: ConnectionConfig) -> Connection:
        """Open a line; `TransportError` when that fails."""
        if opening.mode not in self.modes:
            raise TransportError(
                "invalid_request_error",
                "the local agent has no voice here; run: pip install 'jackfield-transport-local[voice]'",
            )
        dialogue = await self._mind().open(opening)
        if opening.mode == "voice":
            from jackfield_local.voice.connection import VoiceConnection

            return await VoiceConnection.open(dialogue, opening)
        from jackfield_local.text import TextConnection

        return TextConnection(dialogue)

    def describe(self) -> str:
        """How it answers new sessions."""
        return f"it uses {'the local' if self._uses_model() else 'no'} language model"

    async def close(self) -> None:
        """Let go of what all connections share."""
        for mind in (self._given, *self._minds.values()):
            if mind is not None:
                await mind.close()
        self._given = None
        self._minds.clear()

    def _uses_model(self) -> bool:
        if self._settings.mind != "auto":
            return self._settings.mind == "llama"
        from jackfield_local.agent.mind import is_usable

        return is_usable(self._settings)

    def _mind(self) -> Mind:
        """The mind of the next connection: a model may have been downloaded since the last one."""
        if self._given is not None:
            return self._given
        from jackfield_local.agent.mind import Agent, with_model

        model = self._uses_model()
        if model not in self._minds:
            self._minds[model] = with_model(self._settings) if model else Agent(self._settings)
        return self._minds[model]
