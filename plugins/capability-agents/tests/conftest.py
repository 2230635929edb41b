"""Makes the helper modules importable, and sets up every test."""

from __future__ import annotations

import sys
from pathlib import Path

from jackfield_testkit.site_packages import site

__all__ = ["site"]

sys.path.insert(0, str(Path(__file__).parent))
