"""`GET /images/{id}`: the images that tools show, for the user's client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield import ToolError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jackfield_images.images import IMAGES_PATH, ProviderImages

RETRY_SECONDS = 5

OPENAPI: Mapping[str, Any] = {
    "paths": {
        f"{IMAGES_PATH}/{{id}}": {
            "get": {
                "operationId": "get_images_id",
                "summary": "An image that a tool has shown.",
                "parameters": [
                    {
                        "name": "id",
                        "in": "path",
                        "required": True,
                        "description": "The id from the `image` event.",
                        "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
                    }
                ],
                "responses": {
                    "200": {
                        "description": "The image.",
                        "content": {"image/*": {"schema": {"type": "string", "format": "binary"}}},
                    },
                    "404": {"description": "There is no such image."},
                    "503": {"description": "The images cannot be read at the moment."},
                },
            }
        }
    }
}


def create_routes(images: ProviderImages) -> list[Route]:
    """Return the route of the images."""

    async def show(request: Request) -> Response:
        """Return an image; anyone who knows its id may see it."""
        try:
            found = await images.read(request.path_params["id"])
        except ToolError as error:
            return _error(503, "images_unavailable", error.message, {"Retry-After": str(RETRY_SECONDS)})
        if found is None:
            return _error(404, "unknown_image", "There is no such image; it may have been removed.")
        image, content = found
        # An image never changes, and only this user's browser may keep it.
        headers = {"Cache-Control": "private, max-age=31536000, immutable", "Content-Disposition": "inline"}
        return Response(content, media_type=image.media_type, headers=headers)

    return [Route(f"{IMAGES_PATH}/{{id}}", show, methods=["GET"])]


def _error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers=headers)
