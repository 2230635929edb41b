"""Web pages as text, and web search.

The hooks import no HTTP client and no parser; the first call does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, Services

if TYPE_CHECKING:
    from jackfield_web.search import ProviderSearch
    from jackfield_web.settings import WebSearchSettings, WebSettings
    from jackfield_web.web import WebFetcher


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Offer pages if the deployment allows any host, and search if it names a provider."""
    from jackfield_web.settings import WebSearchSettings, WebSettings

    return [
        CapabilityOffer("web", _web, WebSettings.unavailable, WebSettings),
        CapabilityOffer("web_search", _search, WebSearchSettings.unavailable, WebSearchSettings),
    ]


def _web(settings: WebSettings, services: Services) -> WebFetcher:  # noqa: ARG001
    from jackfield_web.web import WebFetcher

    return WebFetcher(settings)


def _search(settings: WebSearchSettings, services: Services) -> ProviderSearch:  # noqa: ARG001
    from jackfield_web.search import ProviderSearch

    return ProviderSearch(settings)
