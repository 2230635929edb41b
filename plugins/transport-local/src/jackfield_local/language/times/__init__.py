"""When something is: days, clocks, and what both together come to."""

from __future__ import annotations

from jackfield_local.language.times.reading import read_when
from jackfield_local.language.times.when import When

__all__ = ["When", "read_when"]
