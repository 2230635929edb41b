"""Scripts as data: YAML, or plain lists, played step by step."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from jackfield_testkit.providers.model import Call, Script, ScriptedModel

Step = Mapping[str, Any]


class ScriptError(ValueError):
    """A script that cannot be played, and which step of it."""


def script_from_yaml(text: str) -> Script:
    """The script that a YAML list of steps describes."""
    import yaml

    try:
        steps = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ScriptError(f"this is not YAML: {error}") from None
    if not isinstance(steps, list):
        raise ScriptError("a script is a list of steps, such as `- says: Hello.`")
    return script_from_steps(steps)


def script_from_steps(steps: Sequence[Step]) -> Script:
    """A script of steps such as `{"hears": None}`, `{"says": "Hello."}`, `{"calls": [{"kb_get": {...}}]}`.

    The name is a verb of `ScriptedModel`, the value its arguments: none, one, a list, or a mapping by name.
    """
    read = [_read(number, step) for number, step in enumerate(steps, 1)]

    async def play(model: ScriptedModel) -> None:
        for verb, given, named in read:
            await getattr(model, verb)(*given, **named)

    return play


def _read(number: int, step: Any) -> tuple[str, Sequence[Any], Mapping[str, Any]]:
    """A step as a verb and its arguments, refused before anything is played when it is none."""
    verb = str(next(iter(step), "")) if isinstance(step, Mapping) and len(step) == 1 else ""
    method = None if verb.startswith("_") else getattr(ScriptedModel, verb, None)
    if not callable(method):
        raise ScriptError(f"step {number}: {step!r} is not one verb of ScriptedModel with its arguments")
    given = step[verb]
    if verb == "calls":
        if not isinstance(given, list):
            raise ScriptError(f"step {number}: calls takes a list, such as `- calls: [{{kb_get: {{}}}}]`")
        return verb, [_call(number, each) for each in given], {}
    listed: Sequence[Any] = ()
    named: Mapping[str, Any] = {}
    if isinstance(given, Mapping):
        named = given
    elif given is not None:
        listed = given if isinstance(given, list) else [given]
    try:
        inspect.signature(method).bind(None, *listed, **named)
    except TypeError as error:
        raise ScriptError(f"step {number}: {verb}: {error}") from None
    return verb, listed, named


def _call(number: int, given: Any) -> Call:
    """`{"kb_get": {...}}`, or `{"tool": "kb_get", "arguments": ..., "id": ...}`."""
    if isinstance(given, Mapping) and "tool" in given:
        return Call(given["tool"], given.get("arguments", {}), given.get("id"))
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ScriptError(f"step {number}: {given!r} is not a tool with its arguments")
    ((tool, arguments),) = given.items()
    return Call(tool, arguments)
