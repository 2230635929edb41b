"""What a deployment may say about the web, and what happens when it says nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import SettingsError
from jackfield_web import jackfield_capabilities
from jackfield_web.options import WebOptions
from jackfield_web.searching.options import SearchOptions

WEB, SEARCH = jackfield_capabilities()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    monkeypatch.delenv("MY_KEY", raising=False)


def test_nothing_is_fetched_until_the_deployment_says_from_whom() -> None:
    assert (WEB.name, SEARCH.name) == ("web", "web_search")
    unsaid: list[dict[str, Any]] = [{}, {"allow": []}, {"deny": ["x.example"], "timeout": 5}]
    for settings in unsaid:
        reason = WEB.unavailable(settings) or ""
        assert reason.startswith("fetching is off until the deployment says whose pages may be read")
        assert 'allow = ["*"]' in reason
    assert WEB.unavailable({"allow": ["*"]}) is None
    assert WEB.unavailable({"allow": ["docs.example.com"]}) is None


def test_there_is_no_search_until_a_provider_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (SEARCH.unavailable({}) or "").startswith("no search provider is configured: set provider")
    assert "url" in (SEARCH.unavailable({"provider": "searxng"}) or "")
    assert SEARCH.unavailable({"provider": "searxng", "url": "http://127.0.0.1:8888"}) is None
    assert "BRAVE_API_KEY" in (SEARCH.unavailable({"provider": "brave"}) or "")
    assert "MY_KEY" in (SEARCH.unavailable({"provider": "brave", "api_key_env": "MY_KEY"}) or "")
    monkeypatch.setenv("MY_KEY", "k")
    assert SEARCH.unavailable({"provider": "brave", "api_key_env": "MY_KEY"}) is None
    monkeypatch.setenv("BRAVE_API_KEY", "k")
    assert SEARCH.unavailable({"provider": "brave"}) is None
    assert SearchOptions.of({"provider": "brave"}).url == "https://api.search.brave.com/res/v1"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"alow": ["*"]}, "did you mean 'allow'"),
        ({"allow": "*"}, "not a list of hosts"),
        ({"allow": ["http://x.example"]}, "is not a host"),
        ({"deny": ["x y"]}, "is not a host"),
        ({"timeout": 0}, "above 0"),
        ({"timeout": True}, "above 0"),
        ({"timeout": float("inf")}, "above 0"),
        ({"max_bytes": -1}, "above 0"),
        ({"max_bytes": 1.5}, "above 0"),
        ({"user_agent": ""}, "not a text"),
        ({"user_agent": "a\r\nHost: b"}, "one line"),
    ],
)
def test_a_setting_of_pages_that_makes_no_sense_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError, match=r"capabilities\.web[.:]") as raised:
        WEB.unavailable(settings)
    assert sentence in str(raised.value)
    with pytest.raises(SettingsError):
        WebOptions.of(settings)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"provder": "brave"}, "did you mean 'provider'"),
        ({"provider": "bing"}, "there are searxng, brave"),
        ({"url": "https://search.example.net"}, "provider is missing"),
        ({"provider": "searxng", "url": "search.example.net"}, "http:// or https://"),
        ({"provider": "searxng", "url": "https://a:b@search.example.net"}, "without a password"),
        ({"provider": "brave", "api_key": "BSA-secret"}, "does not belong in a file"),
        ({"provider": "brave", "safe": "maybe"}, "there are off, moderate, strict"),
        ({"provider": "brave", "timeout": "long"}, "above 0"),
        ({"provider": "brave", "language": ""}, "not a language"),
    ],
)
def test_a_setting_of_search_that_makes_no_sense_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError, match=r"capabilities\.web_search") as raised:
        SEARCH.unavailable(settings)
    assert sentence in str(raised.value)
    assert "BSA-secret" not in str(raised.value)


def test_the_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", "BSA-secret")
    assert "BSA-secret" not in repr(SearchOptions.of({"provider": "brave"}))


def test_asking_what_the_plugin_offers_loads_no_client_and_no_parser(tmp_path: Path) -> None:
    program = (
        "import sys, jackfield_web as p; web, search = p.jackfield_capabilities();"
        "web.create({'allow': ['*']}, None); search.create({'provider': 'searxng', 'url': 'http://x'}, None);"
        "print(sorted({'httpx', 'httpcore', 'anyio', 'lxml', 'trafilatura', 'pypdf'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
