"""Scripts as data: YAML, or plain lists, played step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield_testkit.providers.model import Call, Script, ScriptedModel

Step = Mapping[str, Any]


def script_from_yaml(text: str) -> Script:
    """The script that a YAML list of steps describes."""
    import yaml

    return script_from_steps(yaml.safe_load(text))


def script_from_steps(steps: Sequence[Step]) -> Script:
    """A script of steps such as `{"hears": None}`, `{"says": "Hello."}`, `{"calls": [{"kb_get": {...}}]}`.

    The name is a verb of `ScriptedModel`, the value its arguments: none, one, a list, or a mapping by name.
    """
    for number, step in enumerate(steps, 1):
        verb = next(iter(step), "") if len(step) == 1 else ""
        if verb.startswith("_") or not callable(getattr(ScriptedModel, verb, None)):
            raise ValueError(f"step {number}: {step!r} is not one verb of ScriptedModel with its arguments")

    async def play(model: ScriptedModel) -> None:
        for step in steps:
            ((verb, given),) = step.items()
            if verb == "calls":
                await model.calls(*(_call(each) for each in given))
            elif isinstance(given, Mapping):
                await getattr(model, verb)(**given)
            elif isinstance(given, list):
                await getattr(model, verb)(*given)
            else:
                await getattr(model, verb)(*(() if given is None else (given,)))

    return play


def _call(given: Mapping[str, Any]) -> Call:
    """`{"kb_get": {...}}`, or `{"tool": "kb_get", "arguments": ..., "id": ...}`."""
    if "tool" in given:
        return Call(given["tool"], given.get("arguments", {}), given.get("id"))
    ((tool, arguments),) = given.items()
    return Call(tool, arguments)
