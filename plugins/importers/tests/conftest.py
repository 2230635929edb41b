"""Makes the helper modules of these tests importable."""

from __future__ import annotations

import sys
from pathlib import Path

# Test modules are imported by file, so shared modules must be importable by name.
sys.path.insert(0, str(Path(__file__).parent))
