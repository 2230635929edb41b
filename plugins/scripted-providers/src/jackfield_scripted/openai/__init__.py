"""Scripted OpenAI: chat completions, Realtime over WebSocket, and the HTTP side of WebRTC calls."""

from jackfield_scripted.openai.chat import ChatModel
from jackfield_scripted.openai.realtime import RealtimeModel
from jackfield_scripted.openai.server import OpenAIServer
from jackfield_scripted.server import ProtocolViolationError

__all__ = ["ChatModel", "OpenAIServer", "ProtocolViolationError", "RealtimeModel"]
