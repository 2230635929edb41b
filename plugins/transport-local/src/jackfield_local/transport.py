"""The transport to an agent in this process: text always, voice if its extra is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield.contract.context import Mode
from jackfield.transport.protocol import Connection, ConnectionConfig, TransportError

from jackfield_local.connection import TextConnection
from jackfield_local.model_file import is_usable
from jackfield_local.settings import LocalSettings
from jackfield_local.voice.engines import INSTALL, missing_packages

if TYPE_CHECKING:
    from jackfield_local.agent.agent import LocalAgent


class LocalTransport:
    """Opens connections to an agent that all sessions share; with `auto`, to the best available agent."""

    def __init__(self, settings: LocalSettings, agent: LocalAgent | None = None) -> None:
        self._settings = settings
        self._agents = {} if agent is None else dict.fromkeys((False, True), agent)
        self.modes: frozenset[Mode] = frozenset(("text",) if missing_packages() else ("text", "voice"))

    def adapter(self, mode: Mode) -> str:  # noqa: ARG002 - tools are the same in both
        """Return the schema adapter whose declarations the agent uses."""
        return "local"

    async def connect(self, opening: ConnectionConfig) -> Connection:
        """Open a connection; raises `TransportError` if that fails."""
        if opening.mode not in self.modes:
            raise TransportError(
                "invalid_request_error",
                f"voice support for the local agent is not installed in this environment; run: {INSTALL}",
            )
        dialogue = await self._agent().open(opening)
        if opening.mode == "voice":
            from jackfield_local.voice.connection import VoiceConnection

            return await VoiceConnection.open(dialogue, opening)
        return TextConnection(dialogue)

    def describe(self) -> str:
        """Return, as a clause, whether new sessions use a language model."""
        return f"it uses {'the local' if self._uses_model() else 'no'} language model"

    async def close(self) -> None:
        """Release the resources that all connections share."""
        for agent in {*self._agents.values()}:
            await agent.close()
        self._agents.clear()

    def _uses_model(self) -> bool:
        selection = self._settings.tool_selection
        return is_usable(self._settings) if selection == "auto" else selection == "model"

    def _agent(self) -> LocalAgent:
        """Return the agent for the next connection; a model may have been downloaded since the last one."""
        from jackfield_local.agent.agent import LocalAgent

        model = self._uses_model()
        if model not in self._agents:
            self._agents[model] = (
                LocalAgent.with_model(self._settings) if model else LocalAgent(self._settings)
            )
        return self._agents[model]
