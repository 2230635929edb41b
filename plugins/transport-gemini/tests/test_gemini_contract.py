"""The contract tests of a transport, on Gemini's two APIs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

from jackfield import Mode
from jackfield_gemini.schemas import as_json_schema
from jackfield_gemini.settings import GeminiSettings
from jackfield_gemini.transport import GeminiTransport
from jackfield_scripted import Refusal, Script
from jackfield_scripted.gemini import GeminiServer
from jackfield_testkit.transport import ServedTransport, TransportContractTests


@asynccontextmanager
async def _served(mode: Mode, scripts: Sequence[Script], **options: Any) -> AsyncIterator[ServedTransport]:
    async with GeminiServer(*scripts, tls=mode == "voice", **options) as server:
        settings = GeminiSettings(base_url=server.base_url, ca_file=server.ca_file)
        yield ServedTransport(GeminiTransport(settings), server.models)


class TestGeminiTransport(TransportContractTests):
    # The end of a connection does not end its session: "network" resumes it with the handle.
    close_codes: ClassVar[Mapping[int, str]] = {
        1000: "network",
        1001: "network",
        1007: "invalid_request_error",
        1008: "invalid_request_error",
        1011: "server_error",
    }
    waived: ClassVar[Mapping[str, str]] = {
        "test_malformed_arguments_are_delivered_unchanged": "Gemini sends arguments as an object, not as text"
    }

    def serve(
        self,
        mode: Mode,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        split: int = 0,
        delay: float = 0.0,
    ) -> AbstractAsyncContextManager[ServedTransport]:
        return _served(mode, scripts, refusals=refusals, split=split, delay=delay)

    def declare(self, mode: Mode, tool_id: str, parameters: dict[str, Any]) -> Any:
        return as_json_schema(tool_id, f"The tool {tool_id}.", parameters).declaration
