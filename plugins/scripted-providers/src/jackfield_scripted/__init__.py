"""Scripted OpenAI and Gemini servers: they speak the real wire protocols to the official SDKs, without a key.

A script is a coroutine that plays the model: it hears the user, speaks, calls tools and sees their results.
The same script runs on every protocol, so a conversation is written once and tested on all of them.
"""

from jackfield_scripted.script import (
    Refusal,
    Script,
    ScriptedCall,
    ScriptedModel,
    ScriptError,
    UnsupportedStepError,
    UserInput,
    script_from_steps,
    script_from_yaml,
    split_text,
)

__all__ = [
    "Refusal",
    "Script",
    "ScriptError",
    "ScriptedCall",
    "ScriptedModel",
    "UnsupportedStepError",
    "UserInput",
    "script_from_steps",
    "script_from_yaml",
    "split_text",
]
