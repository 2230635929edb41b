"""The plugin as a host finds it: by its entry point, with every intent of the kernel."""

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
ONLY = ["--allow", "jackfield-intents"]


def test_is_discovered_and_offers_a_handler_for_every_intent_of_the_kernel() -> None:
    plugins = load(discover(Selection(allow=("jackfield-intents",))).plugins)
    assert [(entry.name, entry.value) for entry in plugins.loaded] == [("intents", "jackfield_intents")]
    assert plugins.complaints == ()
    assert [each.name for each in plugins.of("jackfield_intent_handlers")] == INTENTS
    assert len(plugins.offered) == len(INTENTS)


def test_jackfield_plugins_lists_it() -> None:
    report: dict[str, Any] = json.loads(_run("plugins", "--json", *ONLY))
    (plugin,) = report["plugins"]
    assert (plugin["distribution"], plugin["name"]) == ("jackfield-intents", "intents")
    assert [offer["name"] for offer in plugin["offers"]] == INTENTS
    assert report["findings"] == []


def test_it_can_be_switched_off() -> None:
    report: dict[str, Any] = json.loads(_run("plugins", "--json", *ONLY, "--deny", "intents"))
    assert report["plugins"] == []
    off = {"group": "jackfield.plugins", "name": "intents", "distribution": "jackfield-intents"}
    assert off in report["switchedOff"]


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout
