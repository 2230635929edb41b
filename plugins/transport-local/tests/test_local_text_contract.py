"""The contract tests of a transport, on text without a provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, cast

from jackfield import Mode
from jackfield.transport.events import TextDelta
from jackfield.transport.protocol import ConnectionConfig
from jackfield_local import unchanged
from jackfield_local.agent.agent import LocalAgent
from jackfield_local.settings import LocalSettings
from jackfield_local.transport import LocalTransport
from jackfield_scripted import Refusal, Script, split_text
from jackfield_testkit.transport import ServedTransport, TransportContractTests
from local_voice_script import LocalModel


class _Slow(LocalModel):
    """A dialogue that takes its time between two pieces of an answer."""

    def __init__(self, opening: ConnectionConfig, delay: float) -> None:
        super().__init__(opening)
        self._delay = delay

    async def says(self, text: str, *, pieces: int = 3) -> None:
        parts = self._parts
        for piece in split_text(text, pieces):
            parts.put_nowait(TextDelta(piece))
            await asyncio.sleep(self._delay)
            if parts is not self._parts:
                return
        parts.put_nowait(None)


class _Scripts:
    """Opens dialogues that play scripts."""

    def __init__(self, scripts: Sequence[Script], delay: float) -> None:
        self._scripts = scripts
        self._delay = delay
        self._playing: list[asyncio.Future[None]] = []
        self.models: list[LocalModel] = []

    async def open(self, opening: ConnectionConfig) -> LocalModel:
        model = _Slow(opening, self._delay)
        script = self._scripts[min(len(self.models), len(self._scripts) - 1)]
        self.models.append(model)
        self._playing.append(asyncio.ensure_future(script(model)))
        return model

    async def close(self) -> None:
        for task in self._playing:
            task.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)


@asynccontextmanager
async def _served(scripts: Sequence[Script], delay: float) -> AsyncIterator[ServedTransport]:
    scripted = _Scripts(scripts, delay)
    yield ServedTransport(LocalTransport(LocalSettings(), cast("LocalAgent", scripted)), scripted.models)


_NO_PROVIDER = "there is no provider that could refuse, fail or leave"


class TestLocalText(TransportContractTests):
    modes: ClassVar[tuple[Mode, ...]] = ("text",)
    waived: ClassVar[Mapping[str, str]] = {
        "test_usage_is_reported": "nothing is counted, as nothing is paid for",
        "test_calls_of_an_incomplete_message_are_not_delivered": "a local message is always complete",
        "test_refusals_have_error_codes": _NO_PROVIDER,
        "test_close_codes_map_to_error_codes": _NO_PROVIDER,
        "test_provider_errors_have_error_codes": _NO_PROVIDER,
        "test_unreachable_provider_is_a_network_error": _NO_PROVIDER,
    }

    def serve(
        self,
        mode: Mode,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        split: int = 0,
        delay: float = 0.0,
    ) -> AbstractAsyncContextManager[ServedTransport]:
        return _served(scripts, delay)

    def declare(self, mode: Mode, tool_id: str, parameters: dict[str, Any]) -> Any:
        return unchanged(tool_id, f"The tool {tool_id}.", parameters).declaration
