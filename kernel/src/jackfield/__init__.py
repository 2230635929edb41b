"""Jackfield: a plugin microkernel for the tools of voice and text AI agents.

This package exports what authors of tools and plugins need. Everything else is imported from its own module.
"""

from jackfield.contract.context import Mode, SessionView, ToolContext
from jackfield.contract.tool import (
    ErrorType,
    Failure,
    Intent,
    Partial,
    ToolCall,
    ToolError,
    ToolResponse,
    end_voice_session,
    fail,
    ok,
    partial,
    set_pending_message,
    suppress_audio,
    suppress_transcript,
)
from jackfield.hookspecs import hookimpl

__all__ = [
    "ErrorType", "Failure", "Intent", "Mode", "Partial", "SessionView", "ToolCall", "ToolContext",
    "ToolError", "ToolResponse", "end_voice_session", "fail", "hookimpl", "ok", "partial",
    "set_pending_message", "suppress_audio", "suppress_transcript",
]  # fmt: skip
