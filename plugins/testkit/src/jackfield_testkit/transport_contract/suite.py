"""The base class that the author of a transport subclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from jackfield import Mode
from jackfield_scripted import Refusal, Script

from jackfield_testkit.sealing import SealedTests, check_defined, standard_tests
from jackfield_testkit.transport_contract.calling import CallTests
from jackfield_testkit.transport_contract.ending import EndTests
from jackfield_testkit.transport_contract.interrupting import BargeInTests, InterruptTests
from jackfield_testkit.transport_contract.stage import Served, Stage
from jackfield_testkit.transport_contract.talking import TalkTests
from jackfield_testkit.transport_contract.voice import VoiceTests

_VOICE_ONLY = frozenset(standard_tests(VoiceTests, BargeInTests))
_SIGNATURE = "def serving(self, mode, *scripts, refusals=(), split=0, delay=0.0)"


class TransportContractTests(
    SealedTests, TalkTests, CallTests, InterruptTests, VoiceTests, BargeInTests, EndTests, suite=True
):
    """Subclass it, say how a server and a transport to it are made: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(TransportContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    decides = frozenset({"modes", "waived", "close_codes", "serving", "declare"})

    modes: ClassVar[tuple[Mode, ...]] = ("text", "voice")
    """The modes the transport is tested in."""

    close_codes: ClassVar[Mapping[int, str]] = MappingProxyType(
        {1000: "network", 1001: "going_away", 1008: "invalid_request_error", 1011: "server_error"}
    )
    """What each code with which a provider ends a voice connection becomes in `Closed`."""

    @classmethod
    def check_statements(cls) -> None:
        """Refuse a class that does not say what it tests."""
        check_defined(cls, "serving", _SIGNATURE)

    def serving(
        self,
        mode: Mode,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        split: int = 0,
        delay: float = 0.0,
    ) -> AbstractAsyncContextManager[Served]:
        """A server that plays the scripts in that mode and a transport to it, until the block ends.

        It turns as many connections or requests away as there are `refusals`, then plays. With `split`
        what it sends arrives in pieces of so many bytes, `delay` seconds apart.
        """
        raise NotImplementedError(f"{type(self).__name__} defines `{_SIGNATURE}`")

    def declare(self, mode: Mode, tool_id: str, parameters: dict[str, Any]) -> Any:
        """The declaration of a tool, as the transport's schema adapter for that mode makes it."""
        raise NotImplementedError(
            f"{type(self).__name__} defines `def declare(self, mode, tool_id, parameters)`"
        )

    @pytest.fixture
    def stage(self, mode: Mode) -> Stage:
        """Where a standard test lets a script meet the transport."""
        return Stage(self.serving, self.declare, mode, dict(self.close_codes))

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Choose the modes."""
        if "mode" in metafunc.fixturenames:
            modes: tuple[Any, ...] = self.modes
            if metafunc.function.__name__ in _VOICE_ONLY:
                absent = pytest.mark.skip(reason=f"{type(self).__name__} carries no voice")
                modes = ("voice",) if "voice" in modes else (pytest.param("voice", marks=absent),)
            metafunc.parametrize("mode", modes)
