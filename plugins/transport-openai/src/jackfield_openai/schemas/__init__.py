"""How OpenAI is told about a tool, and how strict arguments are turned back into plain ones."""

from __future__ import annotations

from jackfield_openai.schemas.declarations import chat, realtime, strict
from jackfield_openai.schemas.restoring import restorer

__all__ = ["chat", "realtime", "restorer", "strict"]
