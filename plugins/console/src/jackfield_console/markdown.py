"""`POST /render`: renders Markdown from a model or a tool as safe HTML."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jackfield.strict_json import StrictJsonError, parse_arguments
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_CHARACTERS = 64_000
"""The limit for Markdown; answers and guides are far shorter."""

BODY_SECONDS = 20.0
"""How long the body of a request may take to arrive."""

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}

OPENAPI: Mapping[str, Any] = MappingProxyType(
    {
        "paths": {
            "/render": {
                "post": {
                    "operationId": "post_render",
                    "summary": "Markdown as HTML that is safe to show.",
                    "requestBody": {
                        "required": True,
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/MarkdownBody"}}
                        },
                    },
                    "responses": {
                        "200": {
                            "description": "The HTML.",
                            "content": {
                                "application/json": {"schema": {"$ref": "#/components/schemas/Rendered"}}
                            },
                        },
                    },
                }
            }
        },
        "components": {
            "schemas": {
                "MarkdownBody": {
                    "type": "object",
                    "description": "Markdown to render.",
                    "additionalProperties": False,
                    "required": ["markdown"],
                    "properties": {"markdown": {"type": "string", "maxLength": MAX_CHARACTERS}},
                },
                "Rendered": {
                    "type": "object",
                    "description": "Markdown as HTML.",
                    "additionalProperties": True,
                    "required": ["html"],
                    "properties": {
                        "html": {
                            "type": "string",
                            "description": "No scripts, styles, images or forms; links open in a new tab.",
                        }
                    },
                },
            }
        },
    }
)


def create_routes() -> list[Route]:
    """Return the route of the renderer."""
    return [Route("/render", _render, methods=["POST"])]


def render(markdown: str) -> str:
    """Render Markdown as HTML with text, structure and links only."""
    import nh3

    return nh3.clean(
        _parser().render(markdown),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        url_relative="deny",
        set_tag_attribute_values={"a": {"target": "_blank"}},
        link_rel="noopener noreferrer",
    )


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # No images: loading one would tell its site that the answer is being read.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable("image")


async def _render(request: Request) -> Response:
    markdown = await _read_markdown(request)
    if isinstance(markdown, Response):
        return markdown
    # In a thread: a long text takes milliseconds, which would delay the audio of other sessions.
    return JSONResponse({"html": await run_in_threadpool(render, markdown)})


async def _read_markdown(request: Request) -> str | Response:
    """Return the Markdown in the body of a request, or the response for an invalid body."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        return _error(415, "not_json", "The body must be JSON: send Content-Type: application/json.")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            content = await request.body()
    except TimeoutError:
        return _error(408, "too_slow", f"The body did not arrive within {BODY_SECONDS:g} seconds.")
    except ClientDisconnect:
        return _error(400, "cut_off", "The body was cut off.")
    try:
        body, _ = parse_arguments(content)
    except StrictJsonError as error:
        fault = error.faults[0]
        return _error(400, "invalid", f"Invalid body at {fault.where}: {fault.message}.")
    markdown = body.get("markdown")
    if set(body) != {"markdown"} or not isinstance(markdown, str) or len(markdown) > MAX_CHARACTERS:
        expected = f"a string of at most {MAX_CHARACTERS} characters"
        return _error(400, "invalid", f"The body must have exactly one member, `markdown`: {expected}.")
    return markdown


def _error(status: int, code: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status)
