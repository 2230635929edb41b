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
"""How many parts of equal size the subjects are divided into: a step is 0.01 percent."""

GROUPS = 64
"""The number of groups of subjects; an experiment compares groups, because calls of a subject are alike."""


class Assignment(NamedTuple):
    """The arm that a session got in one experiment when it was created."""

    experiment: str
    arm: str
    """The name of a variant, or `control`."""
    key: str
    """Identifies the definition of the experiment; figures of another definition are not comparable."""
    version: int
    """The version of the experiments file."""
    group: int
    """The group of the subject."""
    shadow: bool = False
    """True if the variant runs only for comparison."""

    def to_wire(self) -> dict[str, Any]:
        """Return the assignment in the form in which a session saves it."""
        return self._asdict()

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Assignment:
        """Create an assignment from its saved form."""
        return cls(**{name: wire[name] for name in cls._fields if name in wire})


class SubjectPosition(NamedTuple):
    """Where the hash puts a subject: a step for its arm, and a group that does not depend on the step."""

    step: int
    group: int


def position(salt: str, subject: str) -> SubjectPosition:
    """Return the position of a subject; a different salt gives an unrelated position."""
    hashed = hashlib.sha256(f"{salt}\0{subject}".encode("utf-8", "surrogatepass")).digest()
    # Scaled rather than taken modulo, so that every step has the same share of the hashes.
    step = int.from_bytes(hashed[:8], "big") * STEPS >> 64
    return SubjectPosition(step, hashed[8] % GROUPS)


def arm_at(step: int, variants: Mapping[str, int], control: int) -> str | None:
    """Return the arm at a step, given how many steps each has; None outside of the experiment.

    Variants count from the first step on and control from the last one down. Either can grow into the free
    steps between them without moving a subject from one arm to the other.
    """
    if step >= STEPS - control:
        return CONTROL
    end = 0
    for variant, size in variants.items():
        end += size
        if step < end:
            return variant
    return None
