"""The entry point `intents`: a handler for every intent of the kernel, which can be disabled."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner
from jackfield import end_voice_session, set_pending_message, suppress_audio, suppress_transcript
from jackfield.plugins import load
from jackfield_builder.discovery import Selection, discover
from jackfield_cli import main

INTENTS = sorted(
    intent.type
    for intent in (end_voice_session(), set_pending_message(""), suppress_audio(), suppress_transcript())
)
ONLY = ["--allow", "jackfield-policies"]


def test_a_handler_is_offered_for_every_intent_of_the_kernel() -> None:
    plugins = load(discover(Selection(allow=("jackfield-policies",), deny=("policies",))).plugins)
    (entry,) = plugins.loaded
    assert (entry.name, entry.value) == ("intents", "jackfield_policies.intents")
    assert plugins.faults == ()
    assert [each.name for each in plugins.of("jackfield_intent_handlers")] == INTENTS
    assert len(plugins.offered) == len(INTENTS)


def test_jackfield_plugins_lists_the_intents() -> None:
    report: dict[str, Any] = json.loads(_run("plugins", "--json", *ONLY))
    (plugin,) = (each for each in report["plugins"] if each["name"] == "intents")
    assert plugin["distribution"] == "jackfield-policies"
    assert [offer["name"] for offer in plugin["offers"]] == INTENTS
    assert report["findings"] == []


def test_the_intents_can_be_switched_off_by_name() -> None:
    report: dict[str, Any] = json.loads(_run("plugins", "--json", *ONLY, "--deny", "intents"))
    assert [each["name"] for each in report["plugins"]] == ["policies"]
    off = {"group": "jackfield.plugins", "name": "intents", "distribution": "jackfield-policies"}
    assert off in report["switchedOff"]


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout
