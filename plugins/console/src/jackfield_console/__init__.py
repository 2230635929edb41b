"""The console: a page for chat, for trying tools and for operations, served by the host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import EndpointOffer
from jackfield.settings import NoSettings

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


@hookimpl
def jackfield_endpoints() -> Iterable[EndpointOffer]:
    """Offer the page with its files, and the Markdown renderer that it uses."""
    return [
        EndpointOffer("console", "/", _create_pages, auth="public", settings=NoSettings, openapi=dict),
        EndpointOffer("render", "/render", _create_render, settings=NoSettings, openapi=_describe_render),
    ]


def _create_pages(_settings: Any, _services: Any) -> Iterable[BaseRoute]:
    from jackfield_console.assets import create_routes

    return create_routes()


def _create_render(_settings: Any, _services: Any) -> Iterable[BaseRoute]:
    from jackfield_console.markdown import create_routes

    return create_routes()


def _describe_render() -> Mapping[str, Any]:
    from jackfield_console.markdown import OPENAPI

    return OPENAPI
