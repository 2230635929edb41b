"""How Gemini is told about a tool; runs at build, never in a session."""

from __future__ import annotations

from jackfield_gemini.schemas.declarations import as_json_schema, native

__all__ = ["as_json_schema", "native"]
