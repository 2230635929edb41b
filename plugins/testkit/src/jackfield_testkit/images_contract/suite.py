"""The base class that the author of a maker of pictures subclasses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import pytest
from jackfield.capabilities.images import Images

from jackfield_testkit import capability_guard as guard
from jackfield_testkit.images_contract.making import MakingTests
from jackfield_testkit.images_contract.reading import ReadingTests
from jackfield_testkit.images_contract.refusing import RefusingTests
from jackfield_testkit.images_contract.studio import Studio

DECIDES = frozenset({"images", "waived"})
"""What a subclass decides; everything else in the suite is sealed."""

_SIGNATURE = "async def images(self, place, provider)"


class ImagesContractTests(MakingTests, ReadingTests, RefusingTests):
    """Subclass it, say how pictures are set up: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(ImagesContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    __test__: ClassVar[bool] = False

    waived: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Standard tests that cannot hold for this capability, each with the reason."""

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__test__" not in vars(cls):
            cls.__test__ = not abstract
        guard.check_sealed(cls, ImagesContractTests, DECIDES)
        if not abstract:
            guard.check_statements(cls, ImagesContractTests, "images", _SIGNATURE)

    async def images(self, place: Path, provider: Literal["drawing", "refusing", "unreachable"]) -> Images:
        """The capability over a provider that draws, that refuses every subject, or that is not there.

        `place` is a folder for what it keeps; called twice with the same one, it finds what it kept.
        """
        raise NotImplementedError(f"{type(self).__name__} defines `{_SIGNATURE}`")

    @pytest.fixture
    def studio(self, request: pytest.FixtureRequest, tmp_path: Path) -> Studio:
        """What a standard test has pictures made by."""
        test = request.function.__name__
        if test in self.waived:
            pytest.skip(f"{type(self).__name__} waives {test}: {self.waived[test]}")
        return Studio(self.images, tmp_path / "pictures")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:  # noqa: ARG002
        """Check once more, because an attribute can also be set after the class was made."""
        guard.check_sealed(type(self), ImagesContractTests, DECIDES)
        guard.check_statements(type(self), ImagesContractTests, "images", _SIGNATURE)
