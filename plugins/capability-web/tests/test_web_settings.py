"""The settings of the web, and what is unavailable without them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import SettingsError, parse_settings
from jackfield_web import jackfield_capabilities
from jackfield_web.settings import WebSearchSettings, WebSettings

WEB, SEARCH = jackfield_capabilities()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    monkeypatch.delenv("MY_KEY", raising=False)


def web(**table: Any) -> WebSettings:
    return parse_settings(WebSettings, table, "[capabilities.web]")


def search(**table: Any) -> WebSearchSettings:
    return parse_settings(WebSearchSettings, table, "[capabilities.web_search]")


def test_nothing_is_fetched_without_a_list_of_hosts() -> None:
    assert (WEB.name, SEARCH.name) == ("web", "web_search")
    for settings in (web(), web(allow=[]), web(deny=["x.example"], timeout=5)):
        reason = WEB.unavailable(settings) or ""
        assert reason.startswith("fetching is off until the deployment lists the allowed hosts")
        assert 'allow = ["*"]' in reason
    assert WEB.unavailable(web(allow=["*"])) is None
    assert WEB.unavailable(web(allow=["docs.example.com"])) is None


def test_search_is_unavailable_without_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (SEARCH.unavailable(search()) or "").startswith("no search provider is configured: set provider")
    assert "url" in (SEARCH.unavailable(search(provider="searxng")) or "")
    assert SEARCH.unavailable(search(provider="searxng", url="http://127.0.0.1:8888")) is None
    assert "BRAVE_API_KEY" in (SEARCH.unavailable(search(provider="brave")) or "")
    assert "MY_KEY" in (SEARCH.unavailable(search(provider="brave", api_key_env="MY_KEY")) or "")
    monkeypatch.setenv("MY_KEY", "k")
    assert SEARCH.unavailable(search(provider="brave", api_key_env="MY_KEY")) is None
    monkeypatch.setenv("BRAVE_API_KEY", "k")
    assert SEARCH.unavailable(search(provider="brave")) is None
    assert search(provider="brave").server == "https://api.search.brave.com/res/v1"


SECONDS = "expected a number of seconds above 0, got"
BYTES = "expected an integer number of bytes above 0, got"
HOST = (
    'expected a host without http:// and path, such as "docs.example.com", "*.example.org", '
    '"wiki.example.net:8080" or "*", got'
)
LINE = "expected one line of printable ASCII characters, got"
URL = "expected an http:// or https:// URL without a password or a query, got"


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"alow": ["*"]}, "alow: unknown setting; did you mean 'allow'?"),
        (
            {"allow": "*"},
            f"allow: expected a list of entries, each {HOST.removeprefix('expected ')} '*'; write ['*']",
        ),
        ({"allow": ["http://x.example"]}, f"allow[0]: {HOST} 'http://x.example'"),
        ({"deny": ["x y"]}, f"deny[0]: {HOST} 'x y'"),
        ({"timeout": 0}, f"timeout: {SECONDS} 0"),
        ({"timeout": True}, f"timeout: {SECONDS} true"),
        ({"timeout": float("inf")}, f"timeout: {SECONDS} inf"),
        ({"max_bytes": -1}, f"max_bytes: {BYTES} -1"),
        ({"max_bytes": 1.5}, f"max_bytes: {BYTES} 1.5"),
        ({"user_agent": ""}, f"user_agent: {LINE} ''"),
        ({"user_agent": "a\r\nHost: b"}, f"user_agent: {LINE} 'a\\r\\nHost: b'"),
    ],
)
def test_a_wrong_setting_of_pages_is_reported_with_its_place(table: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        web(**table)
    assert str(raised.value) == f"[capabilities.web] {fault}"


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"provder": "brave"}, "provder: unknown setting; did you mean 'provider'?"),
        ({"provider": "bing"}, "provider: expected one of 'searxng', 'brave', got 'bing'"),
        ({"url": "https://search.example.net"}, "provider: missing; expected one of 'searxng', 'brave'"),
        ({"timeout": 3}, "provider: missing; expected one of 'searxng', 'brave'"),
        ({"provider": "searxng", "url": "search.example.net"}, f"url: {URL} 'search.example.net'"),
        (
            {"provider": "searxng", "url": "https://a:BSA-secret@search.example.net"},
            f"url: {URL} 'https://***@search.example.net'",
        ),
        (
            {"provider": "brave", "api_key": "BSA-secret"},
            "api_key: unknown setting; a secret does not belong in this file: put it into an environment "
            "variable, and set api_key_env to the name of that variable",
        ),
        (
            {"provider": "brave", "safe": "maybe"},
            "safe: expected one of 'off', 'moderate', 'strict', got 'maybe'",
        ),
        ({"provider": "brave", "timeout": "long"}, f"timeout: {SECONDS} 'long'"),
        ({"provider": "brave", "language": ""}, "language: expected a non-empty string, got ''"),
    ],
)
def test_a_wrong_setting_of_search_is_reported_with_its_place(table: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        search(**table)
    assert str(raised.value) == f"[capabilities.web_search] {fault}"
    assert "BSA-secret" not in str(raised.value)


def test_the_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", "BSA-secret")
    assert "BSA-secret" not in repr(search(provider="brave"))


def test_listing_the_offers_loads_no_client_and_no_parser(tmp_path: Path) -> None:
    program = (
        "import sys, jackfield_web as p; web, search = p.jackfield_capabilities();"
        "web.create(web.settings(), None); search.create(search.settings('searxng', 'http://x'), None);"
        "print(sorted({'httpx', 'httpcore', 'anyio', 'lxml', 'trafilatura', 'pypdf'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
