"""`POST /render`: what a model or a tool wrote in Markdown, as HTML that can do no harm."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import Operation, Said
from jackfield_host.endpoints.visit import Visit
from jackfield_host.wire.answers import Outgoing
from jackfield_host.wire.bodies import Body

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MOST_CHARACTERS = 64_000
"""Of Markdown; an answer of a model, or the guide of a tool, is far shorter."""

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}


class MarkdownBody(Body):
    """Something to render."""

    markdown: str = Field(max_length=MOST_CHARACTERS)


class Rendered(Outgoing):
    """Markdown as HTML."""

    html: str = Field(description="Without scripts, styles, pictures and forms; links open elsewhere.")


def rendered(markdown: str) -> str:
    """Markdown as HTML with nothing in it but text, its structure and links."""
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

    # Pictures are left out: one from elsewhere would tell a stranger that the answer is being read.
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return made.disable("image")


async def _render(visit: Visit) -> Response:
    body = await visit.body(MarkdownBody)
    # Beside the loop: a long text takes milliseconds, and others are being heard meanwhile.
    return JSONResponse({"html": await run_in_threadpool(rendered, body.markdown)})


RENDER = Operation(
    "POST",
    "/render",
    "Markdown as HTML that can do no harm.",
    _render,
    {200: (Said("The HTML.", Rendered),)},
    body=MarkdownBody,
)
