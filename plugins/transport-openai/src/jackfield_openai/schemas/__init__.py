"""Tool declarations for OpenAI, and the conversion of strict arguments back to plain ones."""

from __future__ import annotations

from jackfield_openai.schemas.declarations import chat, realtime, strict
from jackfield_openai.schemas.strict_arguments import argument_restorer

__all__ = ["argument_restorer", "chat", "realtime", "strict"]
