"""Tool declarations for Gemini; used at build time only."""

from __future__ import annotations

from jackfield_gemini.schemas.declarations import as_json_schema, native

__all__ = ["as_json_schema", "native"]
