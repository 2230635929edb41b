"""The settings of the capabilities `web` and `web_search`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from jackfield.settings import Bytes, EnvironmentVariable, Format, Help, NonEmpty, Seconds

from jackfield_web.hosts import HostPattern, HostRules

_HOST = (
    'a host without http:// and path, such as "docs.example.com", "*.example.org", '
    '"wiki.example.net:8080" or "*"'
)
_BRAVE_URL = "https://api.search.brave.com/res/v1"
_BRAVE_KEY = "BRAVE_API_KEY"


def _denied(text: str) -> HostPattern:
    entry = HostPattern.of(text)
    if entry.has_port:
        raise ValueError(f"{text!r} names a port; a denied host is denied on all ports")
    return entry


def _user_agent(value: str) -> str:
    if not (value and value.isascii() and value.isprintable()):
        raise ValueError
    return value


def _server(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in value or "?" in value:
        raise ValueError
    return value.rstrip("/")


@dataclass(frozen=True, slots=True)
class WebSettings:
    """`[capabilities.web]`"""

    allow: Annotated[
        tuple[Annotated[HostPattern, Format(_HOST, HostPattern.of)], ...],
        Help("The hosts whose pages may be read.", default="empty: fetching is off"),
    ] = ()
    deny: Annotated[
        tuple[Annotated[HostPattern, Format(_HOST, _denied)], ...],
        Help("Hosts that are never contacted, on any port; overrides `allow`."),
    ] = ()
    timeout: Annotated[
        Seconds,
        Help("Time limit for a page, including redirects and parsing; keep it below the tool's 20 seconds."),
    ] = 15.0
    max_bytes: Annotated[
        Bytes,
        Help(
            "Maximum size of a page, before and after decompression; a longer page is cut off, and the "
            "answer says so."
        ),
    ] = 2 * 1024 * 1024
    user_agent: Annotated[
        Annotated[str, Format("one line of printable ASCII characters", _user_agent)],
        Help("The `User-Agent` header that is sent to hosts."),
    ] = "jackfield-web/0.1"

    @property
    def hosts(self) -> HostRules:
        """The hosts that may be contacted."""
        return HostRules(self.allow, self.deny)

    def unavailable(self) -> str | None:
        """Return why no page can be read, as a clause; None if pages can be read."""
        if self.allow:
            return None
        return (
            "fetching is off until the deployment lists the allowed hosts: "
            'allow = ["docs.example.com"], or allow = ["*"] for every public host, in [capabilities.web]'
        )


@dataclass(frozen=True, slots=True)
class WebSearchSettings:
    """`[capabilities.web_search]`"""

    provider: Annotated[
        Literal["searxng", "brave"] | None,
        Help("The search engine.", default="none: search is off"),
    ] = None
    url: Annotated[
        Annotated[
            str,
            Format("an http:// or https:// URL without a password or a query", _server),
        ]
        | None,
        Help(
            "The address of the provider; redirects are not followed.",
            default="none for `searxng`, Brave's own for `brave`",
        ),
    ] = None
    api_key_env: Annotated[
        EnvironmentVariable | None,
        Help(
            "The environment variable that holds the key; a key in the file itself is rejected.",
            default=f"none for `searxng`, `{_BRAVE_KEY}` for `brave`",
        ),
    ] = None
    language: Annotated[
        NonEmpty | None,
        Help("The language of results, such as `en` or `pt-BR`.", default="the provider's own"),
    ] = None
    safe: Annotated[Literal["off", "moderate", "strict"], Help("How strictly adult content is filtered.")] = (
        "moderate"
    )
    timeout: Annotated[
        Seconds, Help("How long to wait for an answer; keep it below the tool's 10 seconds.")
    ] = 8.0

    def __post_init__(self) -> None:
        given = (self.url, self.api_key_env, self.language, self.safe, self.timeout)
        if self.provider is None and given != (None, None, None, "moderate", 8.0):
            raise ValueError("provider: missing; expected one of 'searxng', 'brave'")

    @property
    def server(self) -> str | None:
        """The address of the provider."""
        return self.url or (_BRAVE_URL if self.provider == "brave" else None)

    @property
    def key(self) -> str:
        """The key of the provider; empty if it is not set."""
        variable = self._key_variable
        return os.environ.get(variable, "") if variable else ""

    @property
    def _key_variable(self) -> str | None:
        return self.api_key_env or (_BRAVE_KEY if self.provider == "brave" else None)

    def unavailable(self) -> str | None:
        """Return why this deployment has no search, as a clause; None if it has one."""
        if self.provider is None:
            return (
                'no search provider is configured: set provider = "searxng" and url, or provider = "brave" '
                f"and the environment variable {_BRAVE_KEY}, in [capabilities.web_search]"
            )
        if not self.server:
            return "the address of the SearXNG server is missing: set url in [capabilities.web_search]"
        variable = self._key_variable
        if variable and not self.key:
            return f"set the environment variable {variable} to the key of the provider {self.provider}"
        return None
