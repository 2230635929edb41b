"""The settings of the transport, their faults, and the mapping of provider errors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import SettingsError, parse_settings
from jackfield.transport.protocol import ConnectionConfig, TransportError
from jackfield.transport.provider_errors import PROVIDER_ERRORS
from jackfield_gemini import errors
from jackfield_gemini.settings import GeminiSettings
from jackfield_gemini.transport import GeminiTransport


def read(**settings: Any) -> GeminiSettings:
    return parse_settings(GeminiSettings, settings, "[transports.gemini]")


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"voice_modell": "x"}, "voice_modell: unknown setting; did you mean 'voice_model'?"),
        ({"text_model": 3}, "text_model: expected a non-empty string, got 3"),
        (
            {"connect_timeout": True},
            "connect_timeout: expected a number of seconds above 0 and up to 3,600, got true",
        ),
        (
            {"request_timeout": 0},
            "request_timeout: expected a number of seconds above 0 and up to 3,600, got 0",
        ),
        (
            {"base_url": "localhost:8000"},
            "base_url: expected a URL that begins with http:// or https://, got 'localhost:8000'",
        ),
        (
            {"adapter": "openai"},
            "adapter: expected one of 'gemini-json-schema', 'gemini-native', got 'openai'",
        ),
        ({"calls": "sometimes"}, "calls: expected one of 'blocking', 'non_blocking', got 'sometimes'"),
        ({"api_version": "v2"}, "api_version: expected one of 'v1', 'v1beta', 'v1alpha', got 'v2'"),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(settings: Any, fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(**settings)
    assert str(raised.value) == f"[transports.gemini] {fault}"


def test_certificate_checks_cannot_be_disabled() -> None:
    with pytest.raises(SettingsError, match="verify: unknown setting; known settings: api_key_env, "):
        read(verify=False)


@pytest.mark.parametrize("key", ["AIzaSyFictional-Key", "AIzaSyFictionalKey", "AQ.Fictional"])
def test_a_key_in_the_settings_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(api_key_env=key)
    assert "such as GEMINI_API_KEY; the key itself belongs in that variable" in str(refused.value)
    assert "Fictional" not in str(refused.value)


def test_unreadable_certificates_fail_at_startup(tmp_path: Path) -> None:
    empty = tmp_path / "ca.pem"
    empty.write_text("no certificate")
    for file in (empty, tmp_path / "missing.pem"):
        with pytest.raises(SettingsError, match="ca_file"):
            GeminiTransport(read(ca_file=str(file)))


def test_the_key_comes_from_the_variable_that_is_named() -> None:
    both = {"GEMINI_API_KEY": "one", "GOOGLE_API_KEY": "two", "OURS": "three"}
    assert GeminiSettings().key(both) == "one"
    assert GeminiSettings().key({"GOOGLE_API_KEY": "two"}) == "two"
    assert GeminiSettings(api_key_env="OURS").key(both) == "three"
    # A named variable takes precedence: another key may belong to another project.
    with pytest.raises(TransportError, match="OURS"):
        GeminiSettings(api_key_env="OURS").key({"GOOGLE_API_KEY": "two"})


def test_a_session_without_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    with pytest.raises(TransportError, match="GEMINI_API_KEY") as refused:
        asyncio.run(GeminiTransport(GeminiSettings()).connect(ConnectionConfig("text", "", {})))
    assert refused.value.code == "authentication"


def test_listing_the_offers_loads_nothing_heavy() -> None:
    code = (
        "import sys, jackfield_gemini as g\n"
        "offer = g.jackfield_transports()[0]\n"
        "offer.create(offer.settings())\n"
        "heavy = {'google.genai', 'numpy', 'soxr', 'websockets', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "reason", "trouble"),
    [
        (1000, "", "network"),
        (1001, "", "network"),
        (1006, "", "network"),
        (1007, "Request contains an invalid argument.", "invalid_request_error"),
        (1007, "API key not valid. Please pass a valid API key.", "authentication"),
        (
            1007,
            "The input token count exceeds the maximum number of tokens allowed",
            "context_length_exceeded",
        ),
        (1008, "", "invalid_request_error"),
        (1008, "The operation was aborted.", "network"),
        (1008, "BidiGenerateContent session not found", "session_expired"),
        (1011, "", "server_error"),
        (1011, "The service is currently unavailable.", "server_error"),
        (1011, "Deadline expired before operation could complete.", "network"),
        (1011, "You exceeded your current quota, please check your plan and billing.", "quota_exhausted"),
        (1011, "Resource has been exhausted (e.g. check quota).", "rate_limit_exceeded"),
        (4999, "", "network"),
    ],
)
def test_close_codes_and_reasons_are_mapped_to_provider_errors(code: int, reason: str, trouble: str) -> None:
    assert errors.close_error(code, reason)[0] == trouble


@pytest.mark.parametrize(
    ("status", "message", "trouble"),
    [
        (400, "Request contains an invalid argument.", "invalid_request_error"),
        (400, "API key not valid. Please pass a valid API key.", "authentication"),
        (400, "The input token count (2000000) exceeds the maximum.", "context_length_exceeded"),
        (401, "", "authentication"),
        (403, "", "authentication"),
        (404, "models/gemini-0 is not found for API version v1.", "invalid_request_error"),
        (429, "", "rate_limit_exceeded"),
        (429, "You exceeded your current quota.", "quota_exhausted"),
        (500, "An internal error has occurred about an API key.", "server_error"),
        (503, "The model is overloaded.", "server_error"),
        (418, "", "invalid_request_error"),
    ],
)
def test_statuses_are_mapped_to_provider_errors(status: int, message: str, trouble: str) -> None:
    assert errors.status_error(status, message).code == trouble


def test_error_details_give_the_retry_delay_and_the_quota() -> None:
    def error(quota: str) -> Any:
        violations = {"violations": [{"quotaId": quota}]}
        return {"error": {"details": [violations, {"retryDelay": "36.5s"}, "nonsense"]}}

    minute = errors.status_error(429, "", error("GenerateRequestsPerMinutePerProject"))
    assert (minute.code, minute.retry_after) == ("rate_limit_exceeded", 36.5)
    assert errors.status_error(429, "", error("GenerateRequestsPerDayPerProject")).code == "quota_exhausted"


def test_every_table_maps_to_provider_errors() -> None:
    tables = (errors.CLOSE_CODES, errors.STATUSES, errors.FINISH_REASONS, errors.TURN_REASONS)
    codes = {code for table in tables for code in table.values()} | {said.code for said in errors.WORDS}
    assert codes <= set(PROVIDER_ERRORS)
