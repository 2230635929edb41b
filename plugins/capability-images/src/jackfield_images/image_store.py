"""Checks generated images and stores them: an image file and a JSON file with its properties.

Both are named after the random id of the image. The JSON file is written last, so an image is complete or
does not exist.
"""

from __future__ import annotations

import json
import re
import secrets
import warnings
from dataclasses import asdict, fields
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, NamedTuple

from jackfield_capability_types.images import StoredImage

from jackfield_images.files import FilesUnavailableError, ImageFiles

MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
"""The formats that every browser shows, by Pillow's names."""

_MOST_PIXELS = 64_000_000

MAX_FACTS_BYTES = 256 * 1024
"""Maximum size of the file with an image's properties; most of it is the prompt."""


class NotAnImageError(Exception):
    """The data is not an image that can be shown; the message says why."""


class ImageInfo(NamedTuple):
    """The type and size of an image."""

    media_type: str
    width: int
    height: int


def inspect(content: bytes) -> ImageInfo:
    """Decode a whole image; call it in a thread, because it is slow."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow warns about very large images; the limit below is stricter.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(BytesIO(content), formats=tuple(MEDIA_TYPES)) as image:
                width, height = image.size
                if width * height > _MOST_PIXELS:
                    raise NotAnImageError(f"it has {width} x {height} pixels, more than can be shown")
                # The header alone does not show that the data is complete.
                image.load()
                return ImageInfo(MEDIA_TYPES[image.format or ""], width, height)
    except UnidentifiedImageError:
        raise NotAnImageError("it is not a PNG, JPEG, WebP or GIF") from None
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        # Pillow's decoders raise all of these for damaged data.
        raise NotAnImageError(f"it is damaged: {error}") from None


_ID = re.compile(r"[0-9a-f]{32}")
_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
_FACTS = tuple(each.name for each in fields(StoredImage))


def is_image_id(value: Any) -> bool:
    """Return whether a value has the form of an image's id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


class ImageStore:
    """The images in a folder or an object store; any number of processes may share it."""

    def __init__(self, files: ImageFiles, max_bytes: int) -> None:
        self._files = files
        self._max_bytes = max_bytes

    def prepare(self) -> None:
        """Raise `OSError` if no image can be stored."""
        self._files.prepare()

    def keep(
        self, content: bytes, seen: tuple[str, int, int], *, prompt: str, by: tuple[str, str]
    ) -> StoredImage:
        """Store an image and its properties."""
        media_type, width, height = seen
        provider, model = by
        kept = StoredImage(
            secrets.token_hex(16), media_type, width, height, len(content), prompt, provider, model
        )
        facts = {**asdict(kept), "created": datetime.now(UTC).isoformat(timespec="seconds")}
        self._files.write(f"{kept.id}{_SUFFIXES[media_type]}", content, media_type)
        described = json.dumps(facts, ensure_ascii=False, indent=1).encode()
        self._files.write(f"{kept.id}.json", described, "application/json")
        return kept

    def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        """Read an image by id; None if the id is unknown or invalid.

        Raises `FilesUnavailableError` if the object store cannot be reached.
        """
        if not is_image_id(image_id):
            return None
        try:
            facts = json.loads(self._files.read(f"{image_id}.json", MAX_FACTS_BYTES))
            kept = StoredImage(**{name: facts[name] for name in _FACTS})
            return kept, self._files.read(f"{image_id}{_SUFFIXES[kept.media_type]}", self._max_bytes)
        except FilesUnavailableError:
            raise
        except (OSError, ValueError, KeyError, TypeError):
            # The operator may have removed the image, even between the two reads.
            return None
