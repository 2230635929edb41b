"""The settings of images, their prices, and their availability."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield.offers import Services
from jackfield.settings import SettingsError, parse_settings
from jackfield.store import MemoryStore
from jackfield_capability_types.images import QUALITIES, SHAPES, ImageOrder
from jackfield_images import jackfield_capabilities, jackfield_policies
from jackfield_images import settings as settings_module
from jackfield_images.prices import BUILT_IN
from jackfield_images.settings import PROVIDERS, ImagesSettings, ProviderConfig


def read(**settings: Any) -> ImagesSettings:
    return parse_settings(ImagesSettings, settings, "[capabilities.images]")


def config(**settings: Any) -> ProviderConfig:
    return ProviderConfig.of(read(**settings))


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "MY_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_provider_the_capability_is_unavailable_with_a_remedy() -> None:
    (offer,) = jackfield_capabilities()
    reason = offer.unavailable(ImagesSettings()) or ""
    assert reason.startswith("no image provider is configured: set OPENAI_API_KEY or GEMINI_API_KEY")
    with pytest.raises(SettingsError, match=r"^\[capabilities.images\]: no image provider is configured"):
        offer.create(ImagesSettings(), Services(MemoryStore()))


def test_a_key_in_the_environment_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "g")
    assert read().unavailable() is None
    assert (config().provider, config().model) == ("gemini", "gemini-3.1-flash-image")
    monkeypatch.setenv("OPENAI_API_KEY", "o")
    assert (config().provider, config().model) == ("openai", "gpt-image-2")
    assert config(provider="gemini").key == "g"


def test_a_provider_without_a_key_names_the_missing_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "OPENAI_API_KEY" in (read(provider="openai").unavailable() or "")
    assert "MY_KEY" in (read(provider="gemini", api_key_env="MY_KEY").unavailable() or "")
    monkeypatch.setenv("MY_KEY", "k")
    assert read(provider="gemini", api_key_env="MY_KEY").unavailable() is None
    assert read(provider="openai", base_url="http://127.0.0.1:9/v1").unavailable() is None


def test_a_provider_without_its_package_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "find_spec", lambda _: None)
    reason = read(provider="openai").unavailable() or ""
    assert "pip install 'jackfield-capability-images[openai]'" in reason


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"provder": "openai"}, "[capabilities.images] provder: unknown setting; did you mean 'provider'?"),
        (
            {"provider": "dalle"},
            "[capabilities.images] provider: expected one of 'openai', 'gemini', got 'dalle'",
        ),
        ({"provider": ""}, "[capabilities.images] provider: expected one of 'openai', 'gemini', got ''"),
        (
            {"api_key": "sk-secret"},
            "[capabilities.images] api_key: unknown setting; a secret does not belong in this file: put it "
            "into an environment variable, and set api_key_env to the name of that variable",
        ),
        (
            {"api_key_env": "sk-secret"},
            "[capabilities.images] api_key_env: expected the name of an environment variable, which holds "
            "the secret itself",
        ),
        (
            {"max_bytes": 0},
            "[capabilities.images] max_bytes: expected an integer number of bytes above 0, got 0",
        ),
        (
            {"max_bytes": True},
            "[capabilities.images] max_bytes: expected an integer number of bytes above 0, got true",
        ),
        (
            {"max_bytes": "big"},
            "[capabilities.images] max_bytes: expected an integer number of bytes above 0, got 'big'",
        ),
        ({"timeout": -1}, "[capabilities.images] timeout: expected a number of seconds above 0, got -1"),
        (
            {"base_url": "images.example"},
            "[capabilities.images] base_url: expected a URL that begins with http:// or https://, got "
            "'images.example'",
        ),
        ({"prices": []}, "[capabilities.images] prices: expected a table, got []"),
        (
            {"prices": {"dalle": {}}},
            "[capabilities.images.prices] dalle: expected one of 'openai', 'gemini', got 'dalle'",
        ),
        ({"prices": {"openai": 1}}, "[capabilities.images.prices] openai: expected a table, got 1"),
        (
            {"prices": {"openai": {"m": 0.1}}},
            "[capabilities.images.prices.openai] m: expected a table, got 0.1",
        ),
        (
            {"prices": {"openai": {"m": {"best": 0.1}}}},
            "[capabilities.images.prices.openai.m] best: expected one of 'draft', 'standard', 'high', got "
            "'best'",
        ),
        (
            {"prices": {"openai": {"m": {"high": {"round": 0.1}}}}},
            "[capabilities.images.prices.openai.m.high] round: expected one of 'square', 'landscape', "
            "'portrait', got 'round'",
        ),
        (
            {"prices": {"openai": {"m": {"high": "cheap"}}}},
            "[capabilities.images.prices.openai.m] high: expected a number of US dollars, at least 0, or a "
            "table, got 'cheap'",
        ),
        (
            {"prices": {"openai": {"m": {"high": -1}}}},
            "[capabilities.images.prices.openai.m] high: expected a number of US dollars, at least 0, got -1",
        ),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(**settings)
    assert str(raised.value) == fault


def test_the_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert "sk-secret" not in repr(config())


def cost(order: ImageOrder, **settings: Any) -> float | None:
    chosen = config(**{"provider": "openai", **settings})
    return chosen.prices.cost(chosen.provider, chosen.model, order)


def test_default_models_have_a_price_for_every_shape_and_quality() -> None:
    for provider, known in PROVIDERS.items():
        for shape in SHAPES:
            for quality in QUALITIES:
                price = cost(ImageOrder("x", shape=shape, quality=quality), provider=provider)
                assert price is not None
                assert 0 < price < 1, (known.model, shape, quality)


def test_a_higher_quality_is_never_cheaper() -> None:
    for models in BUILT_IN.values():
        for qualities in models.values():
            for shape in SHAPES:
                prices = [p[shape] if not isinstance(p := qualities[q], float) else p for q in QUALITIES]
                assert prices == sorted(prices)


def test_prices_scale_with_the_count_and_depend_on_the_model() -> None:
    assert cost(ImageOrder("x")) == 0.053
    assert cost(ImageOrder("x", count=4, quality="high", shape="landscape")) == 0.66
    assert cost(ImageOrder("x"), model="gpt-image-2-2026-04-21") == 0.053
    assert cost(ImageOrder("x"), model="gpt-image-1-mini") == 0.011
    assert cost(ImageOrder("x"), model="gpt-image-2-turbo") is None
    assert cost(ImageOrder("x"), provider="gemini", model="imagen-4.0-fast-generate-001") == 0.02
    assert cost(ImageOrder("x"), provider="gemini", model="gemini-3.1-flash-image-preview") == 0.067


def test_configured_prices_take_precedence_and_other_servers_have_no_defaults() -> None:
    own = {"openai": {"gpt-image-2": {"standard": 0.5, "high": {"square": 0.7}}}}
    assert cost(ImageOrder("x"), prices=own) == 0.5
    assert cost(ImageOrder("x", quality="high"), prices=own) == 0.7
    assert cost(ImageOrder("x", quality="high", shape="portrait"), prices=own) is None
    elsewhere = "http://127.0.0.1:9/v1"
    assert cost(ImageOrder("x"), base_url=elsewhere) is None
    assert cost(ImageOrder("x"), base_url=elsewhere, prices=own) == 0.5


def test_listing_the_offers_loads_no_provider(tmp_path: Path) -> None:
    program = (
        "import sys, jackfield_images as p; list(p.jackfield_capabilities()); list(p.jackfield_policies());"
        "from jackfield_images.settings import ImagesSettings; ImagesSettings().unavailable();"
        "print(sorted({'openai', 'google.genai', 'PIL', 'httpx', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_policy_runs_just_before_confirmation() -> None:
    (offer,) = jackfield_policies()
    assert (offer.name, offer.stage.name, offer.rank) == ("image_consent", "SHAPE", 15)
