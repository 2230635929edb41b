"""The settings of the transport, the faults in them, and the names of errors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from jackfield.settings import SettingsError, parse_settings
from jackfield.transport.protocol import ConnectionConfig, TransportError
from jackfield.transport.provider_errors import PROVIDER_ERRORS
from jackfield_openai import errors, jackfield_schema_adapters, jackfield_transports
from jackfield_openai.settings import OpenAISettings


def read(**settings: Any) -> OpenAISettings:
    return parse_settings(OpenAISettings, settings, "[transports.openai]")


def create(**settings: Any) -> Any:
    (offer,) = jackfield_transports()
    return offer.create(read(**settings))


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"text_modle": "x"}, "text_modle: unknown setting; did you mean 'text_model'?"),
        (
            {"voice": "carrier pigeon"},
            "voice: expected one of 'websocket', 'webrtc', 'off', got 'carrier pigeon'",
        ),
        ({"strict": "yes"}, "strict: expected true or false, got 'yes'"),
        (
            {"base_url": "localhost:11434"},
            "base_url: expected a URL that begins with http:// or https://, got 'localhost:11434'",
        ),
        ({"retries": True}, "retries: expected an integer from 0 to 10, got true"),
        ({"temperature": 3}, "temperature: expected a number from 0 to 2, got 3"),
        (
            {"renew_after_minutes": 60},
            "renew_after_minutes: expected a number of minutes above 0 and below 60, got 60",
        ),
        ({"connect_timeout": 0}, "connect_timeout: expected a number of seconds above 0, got 0"),
        ({"text_model": ""}, "text_model: expected a non-empty string, got ''"),
        (
            {"api_key_env": "sk-proj-secret"},
            "api_key_env: expected the name of an environment variable, which holds the secret itself",
        ),
        (
            {"api_key": "sk-proj-secret"},
            "api_key: unknown setting; a secret does not belong in this file: put it into an environment "
            "variable, and set api_key_env to the name of that variable",
        ),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as told:
        read(**settings)
    assert str(told.value) == f"[transports.openai] {fault}"


def test_an_unknown_setting_is_reported_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"color: unknown setting; known settings: api_key_env, base_url"):
        read(color="blue")


def test_every_setting_can_be_set() -> None:
    table = {
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
        "local_servers": ("127.0.0.1:11434",),
    }
    settings = read(**table)
    assert {name: getattr(settings, name) for name in OpenAISettings.__slots__} == table


def test_strict_chooses_the_adapter() -> None:
    names = {offer.name for offer in jackfield_schema_adapters()}
    for strict, text in ((False, "openai-chat"), (True, "openai-strict")):
        transport = create(strict=strict)
        assert (transport.adapter("text"), transport.adapter("voice")) == (text, "openai-realtime")
        assert {text, "openai-realtime"} <= names
    assert create().modes == {"text", "voice"}


def test_browser_calls_need_the_webrtc_setting() -> None:
    assert hasattr(create(voice="webrtc"), "exchange")
    assert not hasattr(create(voice="websocket"), "exchange")


def test_a_missing_key_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OUR_OPENAI_KEY", raising=False)
    transport = create(api_key_env="OUR_OPENAI_KEY")
    with pytest.raises(TransportError) as told:
        asyncio.run(transport.connect(ConnectionConfig("text", "", {})))
    assert told.value.code == "authentication"
    assert "OUR_OPENAI_KEY is not set" in told.value.detail


def test_asking_what_is_offered_loads_no_sdk() -> None:
    program = (
        "import sys, jackfield_openai as plugin\n"
        "plugin.jackfield_transports(), plugin.jackfield_schema_adapters()\n"
        "offer = plugin.jackfield_transports()[0]\n"
        "offer.create(offer.settings())\n"
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
def test_errors_are_mapped_to_provider_errors(code: Any, kind: Any, status: int | None, trouble: str) -> None:
    assert errors.error_code(code, kind, status) == trouble


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
def test_close_codes_are_mapped_to_provider_errors(number: int | None, reason: str, trouble: str) -> None:
    assert errors.close_error_code(number, reason) == trouble


def test_every_mapped_error_is_a_provider_error() -> None:
    names = {*errors.CODES.values(), *errors.STATUSES.values(), *errors.CLOSES.values()}
    assert names <= set(PROVIDER_ERRORS)


def test_keys_are_removed_from_messages() -> None:
    said = "Incorrect API key provided: sk-proj-abc***wxyz, or ek_12345678, or sess-ABCDEFGH; see the docs."
    assert errors.redacted(said) == "Incorrect API key provided: ..., or ..., or ...; see the docs."
    assert len(errors.redacted("x" * 10_000)) == 300
