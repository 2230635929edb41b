"""The contract tests of a transport, on text without a provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

from jackfield import Mode
from jackfield.transport.protocol import ConnectionConfig
from jackfield_local import as_it_is
from jackfield_local.mind import Words
from jackfield_local.settings import LocalSettings
from jackfield_local.transport import LocalTransport
from jackfield_scripted import Refusal, Script, split_text
from jackfield_testkit.transport import ServedTransport, TransportContractTests
from local_voice_script import LocalModel


class _Slow(LocalModel):
    """A mind that takes its time between two pieces of an answer."""

    def __init__(self, opening: ConnectionConfig, delay: float) -> None:
        super().__init__(opening)
        self._delay = delay

    async def says(self, text: str, *, pieces: int = 3) -> None:
        thoughts = self._thoughts
        for piece in split_text(text, pieces):
            thoughts.put_nowait(Words(piece))
            await asyncio.sleep(self._delay)
            if thoughts is not self._thoughts:
                return
        thoughts.put_nowait(None)


class _Minds:
    """A mind of which every dialogue plays a script."""

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
    minds = _Minds(scripts, delay)
    yield ServedTransport(LocalTransport(LocalSettings(), minds), minds.models)


_NO_PROVIDER = "there is no provider that could refuse, fail or leave"


class TestLocalText(TransportContractTests):
    modes: ClassVar[tuple[Mode, ...]] = ("text",)
    waived: ClassVar[Mapping[str, str]] = {
        "test_usage_is_reported": "nothing is counted, as nothing is paid for",
        "test_calls_of_an_incomplete_message_are_not_delivered": "a local mind makes its calls or does not",
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
        return as_it_is(tool_id, f"The tool {tool_id}.", parameters).declaration
