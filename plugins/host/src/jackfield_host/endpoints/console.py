"""`GET /` and `/console/...`: the page that a person talks, debugs and looks after things with."""

from __future__ import annotations

import hashlib
import mimetypes
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from jackfield_host import errors
from jackfield_host.house import House
from jackfield_host.security.gate import Arrival

PAGE = "index.html"

_TYPES = MappingProxyType({".html": "text/html", ".css": "text/css", ".js": "text/javascript"})
# What the machine's own tables say of these differs, and a module of another type is not run.


class Asset(NamedTuple):
    """One file of the page."""

    content: bytes
    media: str
    etag: str


@cache
def assets() -> dict[str, Asset]:
    """Every file of the page by its path; a path that is not among these leads nowhere."""
    return dict(_below(files("jackfield_host") / "console", ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = prefix + each.name
        if each.is_dir():
            found += _below(each, f"{path}/")
        else:
            found.append((path, _asset(path, each.read_bytes())))
    return found


def _asset(path: str, content: bytes) -> Asset:
    suffix = path[path.rfind(".") :]
    media = _TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"
    return Asset(content, media, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


async def page(request: Request) -> Response:
    """The page itself, to which links may lead from elsewhere."""
    return _served(request, PAGE, page=True)


async def file(request: Request) -> Response:
    """A file that the page loads."""
    return _served(request, request.path_params["path"], page=False)


def _served(request: Request, path: str, *, page: bool) -> Response:
    try:
        # It tells nothing about anybody: who the visitor is shows when the page asks for something.
        House.of(request).gate.screen(Arrival.of(request.scope), page=page)
        asset = assets().get(path)
        if asset is None:
            raise errors.HttpError(404, "no_such_path", "The console has no such file.")
    except Exception as error:  # noqa: BLE001 - one request that fails is one request
        return errors.of(error).response()
    # Asked for again each time and answered with 304, so that a new release shows at once.
    headers = {"ETag": asset.etag, "Cache-Control": "no-cache"}
    if _known(request.headers.get("if-none-match", ""), asset.etag):
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media, headers=headers)


def _known(offered: str, etag: str) -> bool:
    given = [each.strip().removeprefix("W/") for each in offered.split(",")]
    return etag in given or "*" in given
