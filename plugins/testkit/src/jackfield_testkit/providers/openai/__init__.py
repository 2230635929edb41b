"""OpenAI as a script plays it: chat completions, Realtime over WebSocket, and what WebRTC needs beside it."""

from jackfield_testkit.providers.openai.chat_model import ChatModel
from jackfield_testkit.providers.openai.realtime_model import RealtimeModel
from jackfield_testkit.providers.openai.server import OpenAIServer
from jackfield_testkit.providers.openai.violations import ProtocolViolationError

__all__ = ["ChatModel", "OpenAIServer", "ProtocolViolationError", "RealtimeModel"]
