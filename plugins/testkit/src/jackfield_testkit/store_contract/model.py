"""The store compared with the one in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

import pytest

from jackfield_testkit.store_contract.world import World


class ModelTests:
    """The protocol as a whole."""

    examples: ClassVar[int]

    def test_any_sequence(self, world: World, tmp_path: Path) -> None:
        """Whatever is asked in whatever order, the answers are those of the store in memory."""
        probe = world.with_clock(world.place, lambda: 0.0)
        if probe is None:
            pytest.skip("not applicable: no test can set this store's clock; override with_clock() if it can")
        asyncio.run(probe.close())
        pytest.importorskip("hypothesis", reason="hypothesis, which makes up the sequences, is not installed")
        from hypothesis import HealthCheck, settings
        from hypothesis.stateful import run_state_machine_as_test

        from jackfield_testkit.store_contract.comparison import Comparison

        here = {"make": staticmethod(world.with_clock), "folder": tmp_path}
        run_state_machine_as_test(
            type("Compared", (Comparison,), here),
            settings=settings(
                max_examples=self.examples,
                stateful_step_count=40,
                deadline=None,
                database=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
