"""The base class that the author of a way to the web subclasses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jackfield_capability_types.web import Web

from jackfield_testkit.sealing import SealedTests, check_defined
from jackfield_testkit.web_contract.fetching import FetchingTests
from jackfield_testkit.web_contract.forging import ForgingTests
from jackfield_testkit.web_contract.limits import LimitTests
from jackfield_testkit.web_contract.outing import Outing, outing

_SIGNATURE = "async def web(self, host, seconds, largest)"


class WebContractTests(SealedTests, FetchingTests, LimitTests, ForgingTests, suite=True):
    """Subclass it, say how pages are had: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(WebContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    decides = frozenset({"web", "waived"})

    @classmethod
    def check_statements(cls) -> None:
        """Refuse a class that does not say what it tests."""
        check_defined(cls, "web", _SIGNATURE)

    async def web(self, host: str, seconds: float, largest: int) -> Web:
        """The capability for all public hosts, and for `host`, an address with a port, although it is inside.

        Public hosts may be asked on the port of `host` too. A page is given up after so many seconds, and no
        more than `largest` bytes of it are taken.
        """
        raise NotImplementedError(f"{type(self).__name__} defines `{_SIGNATURE}`")

    @pytest.fixture
    def outing(self) -> Iterator[Outing]:
        """What a standard test fetches from."""
        with outing(self.web) as made:
            yield made
