"""Pages of the web as text, and a search for them.

Asking this plugin what it offers imports no HTTP client and no parser; the first call does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, PluginSettings, Services

if TYPE_CHECKING:
    from jackfield_web.searching.search import Search
    from jackfield_web.web import Web


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Pages, where the deployment says whose; search, where it says by whom."""
    return [
        CapabilityOffer("web", _web, _no_web),
        CapabilityOffer("web_search", _search, _no_search),
    ]


def _web(settings: PluginSettings, services: Services) -> Web:  # noqa: ARG001
    from jackfield_web.options import WebOptions
    from jackfield_web.web import Web

    return Web(WebOptions.of(settings))


def _no_web(settings: PluginSettings) -> str | None:
    from jackfield_web.options import WebOptions

    return WebOptions.of(settings).unavailable


def _search(settings: PluginSettings, services: Services) -> Search:  # noqa: ARG001
    from jackfield_web.searching.options import SearchOptions
    from jackfield_web.searching.search import Search

    return Search(SearchOptions.of(settings))


def _no_search(settings: PluginSettings) -> str | None:
    from jackfield_web.searching.options import SearchOptions

    return SearchOptions.of(settings).unavailable
