"""Assignment: the arm of a user or organisation in an experiment, as a pure function.

The same salt and subject give the same arm on every host and after every restart; nothing is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

CONTROL = "control"
"""The arm that uses the tool as it is."""

STEPS = 10_000
"""The number of parts of equal size into which the subjects are divided: a step is 0.01 percent."""

GROUPS = 64
"""The number of groups of subjects; an experiment compares groups, because a subject's calls are alike."""


class Assignment(NamedTuple):
    """The arm that a session got in one experiment when it was created."""

    experiment: str
    arm: str
    """The name of a variant, or `control`."""
    key: str
    """Identifies the experiment's definition; figures for different definitions are not comparable."""
    version: int
    """The version of the experiments file."""
    group: int
    """The subject's group."""
    shadow: bool = False
    """True if the variant runs only for comparison."""

    def to_wire(self) -> dict[str, Any]:
        """Return the assignment's saved form."""
        return self._asdict()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Assignment:
        """Create an assignment from its saved form."""
        return cls(**{name: wire[name] for name in cls._fields if name in wire})


class SubjectPosition(NamedTuple):
    """The hash's position for a subject: a step for its arm, and a group that is independent of the step."""

    step: int
    group: int


def position(salt: str, subject: str) -> SubjectPosition:
    """Return the position of a subject; a different salt gives an unrelated position."""
    hashed = hashlib.sha256(f"{salt}\0{subject}".encode("utf-8", "surrogatepass")).digest()
    # Scaled rather than taken modulo, so that every step has the same share of the hashes.
    step = int.from_bytes(hashed[:8], "big") * STEPS >> 64
    return SubjectPosition(step, hashed[8] % GROUPS)


def arm_at(step: int, variants: Mapping[str, int], control: int) -> str | None:
    """Return the arm at a step, given the number of steps of each arm; None outside the experiment.

    Variants take steps from the first one up, and control takes steps from the last one down. Either can grow
    into the free steps between them without moving a subject from one arm to another.
    """
    if step >= STEPS - control:
        return CONTROL
    end = 0
    for variant, size in variants.items():
        end += size
        if step < end:
            return variant
    return None
