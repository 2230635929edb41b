"""`GET /` and `GET /console/...`: serves the page and its files."""

from __future__ import annotations

import hashlib
import mimetypes
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

PAGE = "index.html"

_TYPES = MappingProxyType({".html": "text/html", ".css": "text/css", ".js": "text/javascript"})
# The operating system's tables may differ, and browsers refuse to run a module with another type.


class Asset(NamedTuple):
    """A file of the page."""

    content: bytes
    media_type: str
    etag: str


def create_routes() -> list[Route]:
    """Return the routes of the page and its files."""
    return [Route("/", _page), Route("/console/{path:path}", _file)]


@cache
def assets() -> dict[str, Asset]:
    """Return every file by its path below `/console/`; no other path is served."""
    return dict(_read(files("jackfield_console") / "static", ""))


def _read(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = prefix + each.name
        if each.is_dir():
            found += _read(each, f"{path}/")
        else:
            found.append((path, _asset(path, each.read_bytes())))
    return found


def _asset(path: str, content: bytes) -> Asset:
    suffix = path[path.rfind(".") :]
    media_type = _TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"
    return Asset(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


async def _page(request: Request) -> Response:
    return _serve(request, PAGE)


async def _file(request: Request) -> Response:
    return _serve(request, request.path_params["path"])


def _serve(request: Request, path: str) -> Response:
    asset = assets().get(path)
    if asset is None:
        error = {"code": "no_such_path", "message": "The console has no such file."}
        return JSONResponse({"error": error}, 404)
    # Browsers revalidate each time and get 304, so that a new release shows at once.
    headers = {"ETag": asset.etag, "Cache-Control": "no-cache"}
    if _matches(request.headers.get("if-none-match", ""), asset.etag):
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)


def _matches(header: str, etag: str) -> bool:
    etags = [each.strip().removeprefix("W/") for each in header.split(",")]
    return etag in etags or "*" in etags
