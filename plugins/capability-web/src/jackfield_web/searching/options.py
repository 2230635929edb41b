"""What a deployment may say about search, in `[capabilities.web_search]`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jackfield.settings import SettingsError

from jackfield_web.tables import Kinds, refuse_unusable

WHERE = "capabilities.web_search"
SEARXNG, BRAVE = "searxng", "brave"
PROVIDERS = (SEARXNG, BRAVE)
SAFETIES = ("off", "moderate", "strict")
KINDS: Kinds = {
    "provider": ((str,), f'a text, "{SEARXNG}" or "{BRAVE}"'),
    "url": ((str,), "an address such as https://search.example.net"),
    "api_key_env": ((str,), "the name of an environment variable"),
    "language": ((str,), "a language such as en or pt-BR"),
    "safe": ((str,), f"one of {', '.join(SAFETIES)}"),
    "timeout": ((int, float), "a number of seconds above 0"),
}

_BRAVE_URL = "https://api.search.brave.com/res/v1"
_BRAVE_KEY = "BRAVE_API_KEY"


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The settings, checked."""

    provider: str = ""
    url: str = ""
    key: str = field(default="", repr=False)
    key_env: str = ""
    language: str = ""
    safe: str = "moderate"
    timeout: float = 8.0

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> SearchOptions:
        """The settings with their defaults, or a sentence about the one that cannot be used."""
        refuse_unusable(WHERE, KINDS, settings)
        _refuse_choices(settings)
        provider = settings.get("provider", "")
        key_env = settings.get("api_key_env", _BRAVE_KEY if provider == BRAVE else "")
        url = settings.get("url", _BRAVE_URL if provider == BRAVE else "")
        return cls(
            provider=provider,
            url=url.rstrip("/"),
            key=os.environ.get(key_env, "") if key_env else "",
            key_env=key_env,
            language=settings.get("language", ""),
            safe=settings.get("safe", "moderate"),
            timeout=float(settings.get("timeout", 8)),
        )

    @property
    def unavailable(self) -> str | None:
        """Why there is no search in this deployment, as a clause; nothing when there is."""
        if not self.provider:
            return (
                f'no search provider is configured: set provider = "{SEARXNG}" and url, or '
                f'provider = "{BRAVE}" and the environment variable {_BRAVE_KEY}, in [{WHERE}]'
            )
        if not self.url:
            return f"the address of the SearXNG server is missing: set url in [{WHERE}]"
        if self.key_env and not self.key:
            return (
                f"the environment variable {self.key_env}, which holds the key of the provider "
                f"{self.provider}, is not set"
            )
        return None


def _refuse_choices(settings: Mapping[str, Any]) -> None:
    for name, choices in (("provider", PROVIDERS), ("safe", SAFETIES)):
        if name in settings and settings[name] not in choices:
            raise SettingsError(
                f"{WHERE}.{name}: {settings[name]!r} is not known; there are {', '.join(choices)}"
            )
    url = settings.get("url", "https://")
    if not url.startswith(("http://", "https://")) or "@" in url or "?" in url:
        raise SettingsError(
            f"{WHERE}.url: an address with http:// or https:// and without a password or a question mark "
            "is wanted"
        )
    if "provider" not in settings and settings:
        raise SettingsError(f"{WHERE}: provider is missing; there are {', '.join(PROVIDERS)}")
