"""What a deployment says, and what it is told when it says it wrong."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import SettingsError
from jackfield.transport.protocol import Opening, TransportError
from jackfield.transport.troubles import TROUBLES
from jackfield_openai import faults, jackfield_schema_adapters, jackfield_transports
from jackfield_openai.options import Options, options


def create(**settings: Any) -> Any:
    (offer,) = jackfield_transports()
    return offer.create(settings)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"text_modle": "x"}, "did you mean 'text_model'"),
        ({"voice": "carrier pigeon"}, "one of websocket, webrtc, off, not 'carrier pigeon'"),
        ({"strict": "yes"}, "strict is true or false, not 'yes'"),
        ({"base_url": "localhost:11434"}, "base_url is a URL"),
        ({"retries": True}, "retries is a whole number from 0 to 10"),
        ({"temperature": 3}, "temperature is a number from 0 to 2"),
        ({"renew_after_minutes": 60}, "between 0 and 60"),
        ({"connect_timeout": 0}, "a number of seconds above 0"),
        ({"api_key_env": ""}, "api_key_env is a text"),
        ({"color": "blue"}, "there are api_key_env"),
    ],
)
def test_a_wrong_setting_is_explained(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError) as told:
        create(**settings)
    assert sentence in str(told.value)
    assert "[transports.openai]" in str(told.value)


def test_every_setting_can_be_said() -> None:
    said = {
        "api_key_env": "OUR_KEY",
        "base_url": "https://models.example/v1",
        "text_model": "a",
        "voice_model": "b",
        "transcription_model": "c",
        "voice_name": "cedar",
        "voice": "webrtc",
        "strict": True,
        "turn_detection": "semantic_vad",
        "noise_reduction": "near_field",
        "temperature": 0.5,
        "connect_timeout": 5,
        "request_timeout": 30,
        "retries": 0,
        "renew_after_minutes": 50,
        "local_servers": ["127.0.0.1:11434"],
    }
    assert options(said) == Options(**said)  # type: ignore[arg-type]
    assert set(said) == set(Options.__slots__)


def test_strict_chooses_the_adapter() -> None:
    names = {offer.name for offer in jackfield_schema_adapters()}
    for strict, text in ((False, "openai-chat"), (True, "openai-strict")):
        transport = create(strict=strict)
        assert (transport.adapter("text"), transport.adapter("voice")) == (text, "openai-realtime")
        assert {text, "openai-realtime"} <= names
    assert create().modes == {"text", "voice"}


def test_browsers_call_only_where_the_deployment_says_so() -> None:
    assert hasattr(create(voice="webrtc"), "exchange")
    assert not hasattr(create(voice="websocket"), "exchange")


def test_a_missing_key_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OUR_OPENAI_KEY", raising=False)
    transport = create(api_key_env="OUR_OPENAI_KEY")
    with pytest.raises(TransportError) as told:
        asyncio.run(transport.connect(Opening("text", "", {})))
    assert told.value.code == "authentication"
    assert "OUR_OPENAI_KEY is not set" in told.value.detail


def test_asking_what_is_offered_loads_no_sdk() -> None:
    program = (
        "import sys, jackfield_openai as plugin\n"
        "plugin.jackfield_transports(), plugin.jackfield_schema_adapters()\n"
        "plugin.jackfield_transports()[0].create({})\n"
        "heavy = {'openai', 'websockets', 'httpx', 'httpx2', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("code", "kind", "status", "trouble"),
    [
        ("session_expired", "invalid_request_error", None, "session_expired"),
        ("rate_limit_exceeded", "requests", 429, "rate_limit_exceeded"),
        ("insufficient_quota", "insufficient_quota", 429, "quota_exhausted"),
        (None, "server_error", None, "server_error"),
        (None, None, 502, "server_error"),
        ("context_length_exceeded", "invalid_request_error", 400, "context_length_exceeded"),
        ("invalid_api_key", "invalid_request_error", 401, "authentication"),
        (None, "invalid_request_error", 403, "authentication"),
        (None, "invalid_request_error", 404, "invalid_request_error"),
        ("unknown_parameter", "invalid_request_error", None, "invalid_request_error"),
        ("content_policy_violation", "invalid_request_error", 400, "content_refused"),
        (17, ["x"], None, "invalid_request_error"),
    ],
)
def test_errors_have_a_name_of_ours(code: Any, kind: Any, status: int | None, trouble: str) -> None:
    assert faults.trouble(code, kind, status) == trouble


@pytest.mark.parametrize(
    ("number", "reason", "trouble"),
    [
        (1000, "", "network"),
        (None, "", "network"),
        (1001, "", "going_away"),
        (1001, "session_expired", "session_expired"),
        (1008, "", "invalid_request_error"),
        (3000, "invalid_request_error.invalid_api_key", "authentication"),
        (1011, "", "server_error"),
        (1011, "too many tokens for one response", "server_error"),
    ],
)
def test_ends_have_a_name_of_ours(number: int | None, reason: str, trouble: str) -> None:
    assert faults.trouble_of_end(number, reason) == trouble


def test_every_name_is_one_of_the_table() -> None:
    names = {*faults.CODES.values(), *faults.STATUSES.values(), *faults.CLOSES.values()}
    assert names <= set(TROUBLES)


def test_what_looks_like_a_key_is_not_told() -> None:
    said = "Incorrect API key provided: sk-proj-abc***wxyz, or ek_12345678, or sess-ABCDEFGH; see the docs."
    assert faults.told(said) == "Incorrect API key provided: ..., or ..., or ...; see the docs."
    assert len(faults.told("x" * 10_000)) == 300


def test_every_setting_is_documented_with_its_default() -> None:
    page = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
    told = dict(re.findall(r"(?m)^\| `(\w+)` \| (.+?) \|", page))
    assert set(told) == set(Options.__slots__)
    for name, default in ((name, getattr(Options(), name)) for name in told):
        if isinstance(default, tuple):
            assert told[name] == f"`{json.dumps(default)}`"
        elif isinstance(default, str):
            assert told[name] == f'`"{default}"`'
        elif isinstance(default, bool):
            assert told[name] == f"`{str(default).lower()}`"
        elif default is not None:
            assert told[name] == f"{default:g}"
