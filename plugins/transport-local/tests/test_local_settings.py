"""What a deployment may say, and what importing costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from jackfield.settings import SettingsError
from jackfield.transport.protocol import Opening, TransportError
from jackfield_local import jackfield_schema_adapters, jackfield_transports
from jackfield_local.options import Options, options
from jackfield_local.transport import LocalTransport
from jackfield_local.zone import zone_in


def test_nothing_has_to_be_said() -> None:
    assert options({}) == Options()
    assert [offer.name for offer in jackfield_transports()] == ["local"]
    assert [offer.name for offer in jackfield_schema_adapters()] == ["local"]


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"time_zon": "Europe/Berlin"}, r"no setting 'time_zon'; did you mean 'time_zone'\?"),
        ({"time_zone": "Europe/Berln"}, r"which is no zone; did you mean 'Europe/Berlin'\?"),
        ({"time_zone": 1}, r"time_zone is a text, not 1"),
        ({"mind": "oracle"}, r"mind is 'oracle'; it is one of auto, router, llama"),
        ({"threads": -1}, r"threads is a number up to 256, not -1"),
    ],
)
def test_what_makes_no_sense_is_refused(said: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        options(said)


def test_voice_without_its_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_local.models.speech.PACKAGES", ("no_such_package",))
    transport = LocalTransport.from_settings({})
    assert transport.modes == {"text"}
    with pytest.raises(TransportError, match=r"pip install 'jackfield-transport-local\[voice\]'"):
        asyncio.run(transport.connect(Opening("voice", "", {})))


def test_the_zone_of_a_session_is_among_its_facts() -> None:
    assert zone_in("Be kind.\n\n## Just now\n\n- time zone: Asia/Tokyo") == "Asia/Tokyo"
    assert zone_in("Write Area/City.\n\n## Just now\n\n- now: noon (UTC)") == ""


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'onnxruntime', 'babel', 'dateutil', 'tokenizers', 'markdown_it'}"
    code = f"import sys, jackfield_local; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
