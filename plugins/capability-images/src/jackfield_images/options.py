"""What a deployment may say about pictures, and whether it has said enough."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jackfield.settings import SettingsError

from jackfield_images.prices import Prices


@dataclass(frozen=True, slots=True)
class Known:
    """What a provider needs."""

    key_env: str
    model: str
    package: str
    extra: str


PROVIDERS: Mapping[str, Known] = {
    "openai": Known("OPENAI_API_KEY", "gpt-image-2", "openai", "openai"),
    "gemini": Known("GEMINI_API_KEY", "gemini-3.1-flash-image", "google.genai", "gemini"),
}

_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "provider": ((str,), 'a text, "openai" or "gemini"'),
    "model": ((str,), "the name of a model"),
    "api_key_env": ((str,), "the name of an environment variable"),
    "base_url": ((str,), "an address such as https://images.example/v1"),
    "folder": ((str,), "a path"),
    "max_bytes": ((int,), "a number of bytes above 0"),
    "timeout": ((int, float), "a number of seconds above 0"),
    "prices": ((dict,), "a table"),
}


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of `[capabilities.images]`, checked."""

    provider: str
    model: str
    key: str = field(repr=False)
    key_env: str
    base_url: str | None
    folder: Path
    max_bytes: int
    timeout: float
    prices: Prices

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Options:
        """The settings with their defaults, or a sentence about the one that cannot be used."""
        _refuse_unusable(settings)
        provider = settings.get("provider") or _chosen()
        if provider is None:
            raise SettingsError(f"[capabilities.images]: {unavailable(settings)}")
        known = PROVIDERS[provider]
        key_env = settings.get("api_key_env", known.key_env)
        base_url = settings.get("base_url")
        return cls(
            provider=provider,
            model=settings.get("model", known.model),
            key=os.environ.get(key_env, ""),
            key_env=key_env,
            base_url=base_url,
            folder=Path(settings.get("folder", "images")).expanduser(),
            max_bytes=settings.get("max_bytes", 20 * 1024 * 1024),
            timeout=float(settings.get("timeout", 110)),
            # Whoever asks another server pays another price.
            prices=Prices.of(settings.get("prices", {}), built_in=base_url is None),
        )


def unavailable(settings: Mapping[str, Any]) -> str | None:
    """Why there are no pictures in this deployment, as a clause; nothing when there are.

    A mistake in the settings is no reason but a mistake, and stops the start with a sentence.
    """
    _refuse_unusable(settings)
    Prices.of(settings.get("prices", {}), built_in=True)
    provider = settings.get("provider") or _chosen()
    if provider is None:
        variables = " or ".join(known.key_env for known in PROVIDERS.values())
        return (
            f"no image provider is configured: set {variables} in the environment, "
            "or provider and api_key_env in [capabilities.images]"
        )
    known = PROVIDERS[provider]
    if not _installed(known.package):
        extra = f"jackfield-capability-images[{known.extra}]"
        return f"the package of the provider {provider} is not installed: pip install '{extra}'"
    key_env = settings.get("api_key_env", known.key_env)
    if not settings.get("base_url") and not os.environ.get(key_env):
        return (
            f"the environment variable {key_env}, which holds the key of the provider {provider}, is not set"
        )
    return None


def _chosen() -> str | None:
    """The first provider whose key is set."""
    return next((name for name, known in PROVIDERS.items() if os.environ.get(known.key_env)), None)


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # The package above it is missing.
        return False


def _refuse_unusable(settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if name == "api_key":
            raise SettingsError(
                "capabilities.images.api_key: a key does not belong in a file; put it into an environment "
                "variable and name that one: api_key_env = 'OPENAI_API_KEY'"
            )
        if name not in _KINDS:
            close = get_close_matches(name, _KINDS, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(_KINDS)}"
            raise SettingsError(f"capabilities.images: unknown setting {name!r}; {meant}")
        kinds, wanted = _KINDS[name]
        # To Python true is the number 1, to whoever wrote the setting it is not.
        usable = isinstance(value, kinds) and not isinstance(value, bool)
        if not usable or not (isinstance(value, dict) or (value if isinstance(value, str) else value > 0)):
            raise SettingsError(f"capabilities.images.{name}: {value!r} is not {wanted}")
    provider = settings.get("provider", "openai")
    if provider not in PROVIDERS:
        raise SettingsError(
            f"capabilities.images.provider: {provider!r} is not known; there are {', '.join(PROVIDERS)}"
        )
    if not str(settings.get("base_url", "http://")).startswith(("http://", "https://")):
        raise SettingsError("capabilities.images.base_url: an address with http:// or https:// is wanted")
