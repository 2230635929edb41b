"""The contract tests of a transport, on voice without a provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

from jackfield import Mode
from jackfield.transport.protocol import Connection, ConnectionConfig
from jackfield_local import unchanged
from jackfield_local.voice.connection import VoiceConnection
from jackfield_scripted import Refusal, Script
from jackfield_testkit.transport import ServedTransport, TransportContractTests
from local_voice_script import LocalModel


class _Scripted:
    """Opens voice connections to dialogues that play scripts, one script each."""

    modes: frozenset[Mode] = frozenset(("voice",))

    def __init__(self, scripts: Sequence[Script]) -> None:
        self._scripts = list(scripts)
        self.models: list[LocalModel] = []
        self._playing: list[asyncio.Task[None]] = []

    def adapter(self, mode: Mode) -> str:
        return "local"

    async def connect(self, opening: ConnectionConfig) -> Connection:
        model = LocalModel(opening)
        script = self._scripts[min(len(self.models), len(self._scripts) - 1)]
        self.models.append(model)
        self._playing.append(asyncio.ensure_future(script(model)))
        return VoiceConnection(model, model.engines, opening.voice)

    async def close(self) -> None:
        for task in self._playing:
            task.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)


@asynccontextmanager
async def _served(scripts: Sequence[Script]) -> AsyncIterator[ServedTransport]:
    transport = _Scripted(scripts)
    yield ServedTransport(transport, transport.models)


_NO_PROVIDER = "there is no provider that could refuse, fail or leave"
_HEARD = "a local dialogue learns whether it was heard, not milliseconds; see test_local_voice_barge_in"


class TestLocalVoice(TransportContractTests):
    modes: ClassVar[tuple[Mode, ...]] = ("voice",)
    waived: ClassVar[Mapping[str, str]] = {
        "test_usage_is_reported": "nothing is counted, as nothing is paid for",
        "test_calls_of_an_incomplete_message_are_not_delivered": "a local message is always complete",
        "test_refusals_have_error_codes": _NO_PROVIDER,
        "test_close_codes_map_to_error_codes": _NO_PROVIDER,
        "test_provider_errors_have_error_codes": _NO_PROVIDER,
        "test_unreachable_provider_is_a_network_error": _NO_PROVIDER,
        "test_announced_end_of_the_connection_is_reported": _NO_PROVIDER,
        "test_barge_in_truncates_at_the_played_position": _HEARD,
        "test_truncation_beyond_the_end_is_clamped": _HEARD,
        "test_truncation_at_zero_deletes_the_item": _HEARD,
        "test_truncation_of_an_unknown_item_does_nothing": _HEARD,
    }

    def serve(
        self,
        mode: Mode,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        split: int = 0,
        delay: float = 0.0,
    ) -> AbstractAsyncContextManager[ServedTransport]:
        return _served(scripts)

    def declare(self, mode: Mode, tool_id: str, parameters: dict[str, Any]) -> Any:
        return unchanged(tool_id, f"The tool {tool_id}.", parameters).declaration
