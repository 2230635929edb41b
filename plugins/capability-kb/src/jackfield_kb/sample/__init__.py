"""A sample knowledge base of a fictional design studio."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "halden_street"
"""The folder of the sample documents."""
