"""Whether what a provider sent is really an image, and which."""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import NamedTuple

MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
"""The formats that every browser shows, by Pillow's names for them."""

_MOST_PIXELS = 64_000_000


class NotAnImageError(Exception):
    """What came is no image, or none that can be shown; says why."""


class Seen(NamedTuple):
    """What an image is."""

    media_type: str
    width: int
    height: int


def inspect(content: bytes) -> Seen:
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
                return Seen(MEDIA_TYPES[image.format or ""], width, height)
    except UnidentifiedImageError:
        raise NotAnImageError("it is no PNG, JPEG, WebP or GIF") from None
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        # Pillow's decoders fail in all of these ways for data that is damaged.
        raise NotAnImageError(f"it is damaged: {error}") from None
