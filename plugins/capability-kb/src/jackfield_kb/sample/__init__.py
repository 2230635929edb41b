"""A small knowledge base of a made-up design studio, for a first look around."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "halden_street"
"""Where its documents lie."""
