"""The transport of a deployment without a model provider: tools can be called, conversations are off."""

from __future__ import annotations

from jackfield.contract.context import Mode
from jackfield.transport.protocol import Connection, ConnectionConfig, TransportError


class NoProvider:
    """Supports no mode, so that no session with a model can be opened."""

    modes: frozenset[Mode] = frozenset()

    def adapter(self, mode: Mode) -> str:
        """Return an empty name: nothing is declared to a model."""
        del mode
        return ""

    async def connect(self, config: ConnectionConfig) -> Connection:
        """Refuse, because there is no model."""
        raise TransportError("invalid_request_error", f"there is no provider for {config.mode} sessions")

    async def close(self) -> None:
        """Do nothing."""
