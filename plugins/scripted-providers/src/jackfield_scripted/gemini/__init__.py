"""Scripted Gemini: Live over WebSocket, and text over HTTP."""

from jackfield_scripted.gemini.live import GeminiOptions, LiveModel
from jackfield_scripted.gemini.server import GeminiServer
from jackfield_scripted.gemini.text import TextModel
from jackfield_scripted.server import ProtocolViolationError

__all__ = ["GeminiOptions", "GeminiServer", "LiveModel", "ProtocolViolationError", "TextModel"]
