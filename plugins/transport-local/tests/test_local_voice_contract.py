"""The standard tests of a transport, on voice without a provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

from jackfield import Mode
from jackfield.transport.protocol import Connection, Opening
from jackfield_local import as_it_is
from jackfield_local.voice.connection import VoiceConnection
from jackfield_scripted import Refusal, Script
from jackfield_testkit.transport_contract import Served, TransportContractTests
from local_voice_script import LocalModel


class _Scripted:
    """Opens voice connections to minds that play scripts, one script each."""

    modes: frozenset[Mode] = frozenset(("voice",))

    def __init__(self, scripts: Sequence[Script]) -> None:
        self._scripts = list(scripts)
        self.models: list[LocalModel] = []
        self._playing: list[asyncio.Task[None]] = []

    def adapter(self, mode: Mode) -> str:
        return "local"

    async def connect(self, opening: Opening) -> Connection:
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
async def _served(scripts: Sequence[Script]) -> AsyncIterator[Served]:
    transport = _Scripted(scripts)
    yield Served(transport, transport.models)


_NO_PROVIDER = "there is no provider that could refuse, fail or leave"
_WORDS = (
    "a local mind is told words rather than milliseconds; test_local_voice_barge_in has the same for words"
)


class TestLocalVoice(TransportContractTests):
    modes: ClassVar[tuple[Mode, ...]] = ("voice",)
    waived: ClassVar[Mapping[str, str]] = {
        "test_usage_is_reported": "nothing is counted, as nothing is paid for",
        "test_calls_that_were_taken_back_never_come": "a local mind makes its calls or does not",
        "test_refusals_are_named": _NO_PROVIDER,
        "test_close_codes_are_named": _NO_PROVIDER,
        "test_errors_of_the_provider_are_named": _NO_PROVIDER,
        "test_nobody_answers": _NO_PROVIDER,
        "test_a_warning_comes_before_the_end": _NO_PROVIDER,
        "test_a_barge_in_cuts_at_what_was_heard": _WORDS,
        "test_truncating_beyond_the_end_is_cut_to_it": _WORDS,
        "test_nothing_heard_deletes_the_item": _WORDS,
        "test_truncating_what_is_not_there_is_harmless": _WORDS,
    }

    def serving(
        self,
        mode: Mode,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        split: int = 0,
        delay: float = 0.0,
    ) -> AbstractAsyncContextManager[Served]:
        return _served(scripts)

    def declare(self, mode: Mode, tool_id: str, parameters: dict[str, Any]) -> Any:
        return as_it_is(tool_id, f"The tool {tool_id}.", parameters).declaration
