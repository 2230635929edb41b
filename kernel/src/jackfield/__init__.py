"""Jackfield: a plugin microkernel for the tools of voice and text AI agents.

What the author of a tool or of a plugin imports stands here; the rest of the kernel is found by its folder.
"""

from jackfield.contract.call import ToolCall
from jackfield.contract.context import Mode, SessionView, ToolContext
from jackfield.contract.errors import ErrorType, ToolError
from jackfield.contract.intents import (
    Intent,
    end_voice_session,
    set_pending_message,
    suppress_audio,
    suppress_transcript,
)
from jackfield.contract.response import Failure, ToolResponse, fail, ok
from jackfield.hookspecs import hookimpl

__all__ = [
    "ErrorType", "Failure", "Intent", "Mode", "SessionView", "ToolCall", "ToolContext", "ToolError",
    "ToolResponse", "end_voice_session", "fail", "hookimpl", "ok", "set_pending_message",
    "suppress_audio", "suppress_transcript",
]  # fmt: skip
