"""Gemini as a script plays it: Live over WebSocket, and text over HTTP."""

from jackfield_testkit.providers.gemini.live_model import LiveHabits, LiveModel
from jackfield_testkit.providers.gemini.server import GeminiServer
from jackfield_testkit.providers.gemini.text_model import TextModel
from jackfield_testkit.providers.gemini.violations import ProtocolViolationError

__all__ = ["GeminiServer", "LiveHabits", "LiveModel", "ProtocolViolationError", "TextModel"]
