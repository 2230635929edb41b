"""The base class that the author of a maker of pictures subclasses."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from jackfield_capability_types.images import Images

from jackfield_testkit.images_contract.making import MakingTests
from jackfield_testkit.images_contract.reading import ReadingTests
from jackfield_testkit.images_contract.refusing import RefusingTests
from jackfield_testkit.images_contract.studio import Studio
from jackfield_testkit.sealing import SealedTests, check_defined

_SIGNATURE = "async def images(self, place, provider)"


class ImagesContractTests(SealedTests, MakingTests, ReadingTests, RefusingTests, suite=True):
    """Subclass it, say how pictures are set up: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(ImagesContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    decides = frozenset({"images", "waived"})

    @classmethod
    def check_statements(cls) -> None:
        """Refuse a class that does not say what it tests."""
        check_defined(cls, "images", _SIGNATURE)

    async def images(self, place: Path, provider: Literal["drawing", "refusing", "unreachable"]) -> Images:
        """The capability over a provider that draws, that refuses every subject, or that is not there.

        `place` is a folder for what it keeps; called twice with the same one, it finds what it kept.
        """
        raise NotImplementedError(f"{type(self).__name__} defines `{_SIGNATURE}`")

    @pytest.fixture
    def studio(self, tmp_path: Path) -> Studio:
        """What a standard test has pictures made by."""
        return Studio(self.images, tmp_path / "pictures")
