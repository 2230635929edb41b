"""A folder of pictures: one file for each, and beside it one that says what it is.

The name of both is the picture's id, drawn at random. What stands beside it is written last, so a picture is
there whole or not at all.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import warnings
from dataclasses import asdict, fields
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from jackfield.files import write_atomically
from jackfield_capability_types.images import StoredImage

MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
"""The formats that every browser shows, by Pillow's names for them."""

_MOST_PIXELS = 64_000_000


class NotAnImageError(Exception):
    """What came is no image, or none that can be shown; says why."""


class ImageInfo(NamedTuple):
    """What an image is."""

    media_type: str
    width: int
    height: int


def inspect(content: bytes) -> ImageInfo:
    """Decode an image to the end; it takes a moment, so it does not belong on the loop."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow warns of images that are large enough to be an attack; ours has a limit of its own.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(BytesIO(content), formats=tuple(MEDIA_TYPES)) as image:
                width, height = image.size
                if width * height > _MOST_PIXELS:
                    raise NotAnImageError(f"it has {width} x {height} pixels, more than can be shown")
                # The header alone would also be there when the rest was cut off.
                image.load()
                return ImageInfo(MEDIA_TYPES[image.format or ""], width, height)
    except UnidentifiedImageError:
        raise NotAnImageError("it is no PNG, JPEG, WebP or GIF") from None
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        # Pillow's decoders fail in all of these ways for data that is damaged.
        raise NotAnImageError(f"it is damaged: {error}") from None


_ID = re.compile(r"[0-9a-f]{32}")
_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
_FACTS = tuple(each.name for each in fields(StoredImage))


class Gallery:
    """The pictures of one folder; any number of processes may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self) -> None:
        """Make the folder, for its owner alone; `OSError` when nothing can be written there."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise PermissionError(f"{self._folder} cannot be written to")

    def keep(
        self, content: bytes, seen: tuple[str, int, int], *, prompt: str, by: tuple[str, str]
    ) -> StoredImage:
        """Keep a picture; what it is stands beside it."""
        media_type, width, height = seen
        provider, model = by
        kept = StoredImage(
            secrets.token_hex(16), media_type, width, height, len(content), prompt, provider, model
        )
        facts = {**asdict(kept), "created": datetime.now(UTC).isoformat(timespec="seconds")}
        write_atomically(self._folder / f"{kept.id}{_SUFFIXES[media_type]}", content)
        described = json.dumps(facts, ensure_ascii=False, indent=1).encode()
        write_atomically(self._folder / f"{kept.id}.json", described)
        return kept

    def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        """A picture by its id; nothing for an id that is unknown, or that is no id at all."""
        if not _ID.fullmatch(image_id):
            return None
        try:
            facts = json.loads(self._read(f"{image_id}.json"))
            kept = StoredImage(**{name: facts[name] for name in _FACTS})
            return kept, self._read(f"{image_id}{_SUFFIXES[kept.media_type]}")
        except (OSError, ValueError, KeyError, TypeError):
            # Removed by whoever tidies the folder, perhaps between the two reads.
            return None

    def _read(self, name: str) -> bytes:
        # Not through a link: whoever can put one into the folder must not choose what is shown.
        descriptor = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            return file.read()
