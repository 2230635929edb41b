"""The base class that the author of agents subclasses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from jackfield_testkit.agents_contract.ending import EndingTests
from jackfield_testkit.agents_contract.office import Agents, Model, Office
from jackfield_testkit.agents_contract.working import WorkingTests
from jackfield_testkit.sealing import SealedTests, check_defined

_SIGNATURE = "async def agents(self, place, model, seconds)"


class AgentsContractTests(SealedTests, WorkingTests, EndingTests, suite=True):
    """Subclass it, say how agents are set up: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(AgentsContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    decides = frozenset({"agents", "tools", "waived"})

    tools: ClassVar[Sequence[str]] = ("look", "count")
    """What the agents may use, at least two; the first of them finds things."""

    @classmethod
    def check_statements(cls) -> None:
        """Refuse a class that does not say what it tests."""
        check_defined(cls, "agents", _SIGNATURE)

    async def agents(self, place: Path, model: Model, seconds: float) -> Agents:
        """Agents that end their work after so many seconds: one at a time for a user, three at once for all.

        Their model is `looking`: it uses the first of `tools` and reports in the words of the instructions;
        `endless`: it uses that tool again and again; `silent`: it says nothing; `failing`: its provider has a
        fault that passes, though not now; or `refusing`: its provider does not accept the deployment.
        """
        raise NotImplementedError(f"{type(self).__name__} defines `{_SIGNATURE}`")

    @pytest.fixture
    def office(self, tmp_path: Path) -> Office:
        """Where a standard test has work done."""
        return Office(self.agents, tmp_path, self.tools)
