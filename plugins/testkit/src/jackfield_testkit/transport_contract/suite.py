"""The base class that the author of a transport subclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from jackfield import Mode

from jackfield_testkit import capability_guard as guard
from jackfield_testkit.providers.model import Refusal, Script
from jackfield_testkit.tool_contract.guard import standard_tests
from jackfield_testkit.transport_contract.calling import CallTests
from jackfield_testkit.transport_contract.ending import EndTests
from jackfield_testkit.transport_contract.interrupting import BargeInTests, InterruptTests
from jackfield_testkit.transport_contract.stage import Served, Stage
from jackfield_testkit.transport_contract.talking import TalkTests
from jackfield_testkit.transport_contract.voice import VoiceTests

DECIDES = frozenset({"modes", "waived", "close_codes", "serving", "declare"})
"""What a subclass decides; everything else in the suite is sealed."""

_VOICE_ONLY = frozenset(standard_tests(VoiceTests) + standard_tests(BargeInTests))
_SIGNATURE = "def serving(self, mode, *scripts, refusals=(), split=0, delay=0.0)"


class TransportContractTests(TalkTests, CallTests, InterruptTests, VoiceTests, BargeInTests, EndTests):
    """Subclass it, say how a server and a transport to it are made: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(TransportContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    __test__: ClassVar[bool] = False

    modes: ClassVar[tuple[Mode, ...]] = ("text", "voice")
    """The modes the transport is tested in."""

    close_codes: ClassVar[Mapping[int, str]] = MappingProxyType(
        {1000: "network", 1001: "going_away", 1008: "invalid_request_error", 1011: "server_error"}
    )
    """What each code with which a provider ends a voice connection becomes in `Closed`."""

    waived: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Standard tests that cannot hold for this transport, each with the reason."""

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__test__" not in vars(cls):
            cls.__test__ = not abstract
        guard.check_sealed(cls, TransportContractTests, DECIDES)
        if not abstract:
            guard.check_statements(cls, TransportContractTests, "serving", _SIGNATURE)

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
    def stage(self, request: pytest.FixtureRequest, mode: Mode) -> Stage:
        """Where a standard test lets a script meet the transport."""
        test = request.function.__name__
        if test in self.waived:
            pytest.skip(f"{type(self).__name__} waives {test}: {self.waived[test]}")
        return Stage(self.serving, self.declare, mode, dict(self.close_codes))

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Check once more, as an attribute can be set after the class was made; choose the modes."""
        guard.check_sealed(type(self), TransportContractTests, DECIDES)
        guard.check_statements(type(self), TransportContractTests, "serving", _SIGNATURE)
        if "mode" in metafunc.fixturenames:
            modes: tuple[Any, ...] = self.modes
            if metafunc.function.__name__ in _VOICE_ONLY:
                absent = pytest.mark.skip(reason=f"{type(self).__name__} carries no voice")
                modes = ("voice",) if "voice" in modes else (pytest.param("voice", marks=absent),)
            metafunc.parametrize("mode", modes)
