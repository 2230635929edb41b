"""The settings of the transport, and what importing it costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from jackfield.settings import SettingsError, parse_settings
from jackfield.transport.protocol import ConnectionConfig, TransportError
from jackfield_local import jackfield_schema_adapters, jackfield_transports
from jackfield_local.agent.agent import session_zone
from jackfield_local.settings import LocalSettings
from jackfield_local.transport import LocalTransport


def test_no_setting_is_required() -> None:
    assert parse_settings(LocalSettings, {}, "[transports.local]") == LocalSettings()
    assert [offer.name for offer in jackfield_transports()] == ["local"]
    assert [offer.name for offer in jackfield_schema_adapters()] == ["local"]


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"time_zon": "Europe/Berlin"}, "time_zon: unknown setting; did you mean 'time_zone'?"),
        (
            {"time_zone": "Europe/Berln"},
            "time_zone: there is no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?",
        ),
        ({"time_zone": 1}, "time_zone: expected an IANA time zone such as Europe/London, got 1"),
        (
            {"tool_selection": "oracle"},
            "tool_selection: expected one of 'auto', 'router', 'model', got 'oracle'",
        ),
        ({"threads": -1}, "threads: expected an integer from 0 to 256, got -1"),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(table: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_settings(LocalSettings, table, "[transports.local]")
    assert str(raised.value) == f"[transports.local] {fault}"


def test_voice_without_its_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_local.voice.engines.PACKAGES", ("no_such_package",))
    transport = LocalTransport(LocalSettings())
    assert transport.modes == {"text"}
    with pytest.raises(TransportError, match=r"pip install 'jackfield-transport-local\[voice\]'"):
        asyncio.run(transport.connect(ConnectionConfig("voice", "", {})))


def test_the_zone_of_a_session_is_among_its_facts() -> None:
    assert session_zone("Be kind.\n\n## Just now\n\n- time zone: Asia/Tokyo") == "Asia/Tokyo"
    assert session_zone("Write Area/City.\n\n## Just now\n\n- now: noon (UTC)") == ""


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'onnxruntime', 'babel', 'dateutil', 'tokenizers', 'markdown_it'}"
    code = f"import sys, jackfield_local; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
