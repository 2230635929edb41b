"""Parses a brief, so that no variant contradicts it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_REQUEST = re.compile(
    r"^\s*(?:please\s+)?(?:(?:can|could|would) you\s+)?(?:please\s+)?"
    r"(?:draw|(?:i(?:'d| would) like|i want|i need|paint|sketch|make|create|generate|design|show|give)"
    # `Design studio at night` is not a request.
    r"(?=\s+(?:me|us|an?|some|the|my|our|one|two|three|four|\d+)\b))\s+"
    r"(?:me\s+|us\s+)?"
    r"(?:(?:an?|some|the)\s+(?:\w+\s+){0,2}?"
    r"(?:picture|image|photo|photograph|drawing|illustration|painting|sketch)s?\s+(?:of|showing|with)\s+)?",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u201e\u00ab\u00bb]{1,80})[\"\u201d\u201c\u00bb]"
)
_MEDIA = (
    ("pixel_art", r"pixel[ -]?art|8-bit|16-bit"),
    ("watercolour", r"water ?colou?rs?|aquarelle"),
    ("line_art", r"line[ -](?:art|drawing)|pencil|ink drawing|sketch|woodcut|etching"),
    ("render_3d", r"3d|render(?:ing)?|claymation"),
    ("flat", r"flat design|vector|isometric|logo|icon"),
    ("painting", r"oil painting|acrylics?|painting|painted"),
    ("illustration", r"illustration|cartoon|comic|storybook|drawing"),
    ("photo", r"photo(?:graph)?s?|photorealistic|photographic|polaroid"),
)
_LIGHT = re.compile(
    r"\b(?:night|midnight|dawn|dusk|sunrise|sunset|noon|morning|afternoon|evening|twilight|moonlight|moonlit|"
    r"sunny|sunlit|candle ?lit|candlelight|neon|backlit|fog|foggy|mist|misty|rain|rainy|storm|stormy|"
    r"snowstorm|overcast|golden hour|blue hour|underwater|in space|dark|lamplight)\b",
    re.IGNORECASE,
)
_FRAMING = re.compile(
    r"\b(?:close[ -]?up|macro|wide[ -]angle|wide view|panorama|aerial|from above|from below|bird'?s[ -]eye|"
    r"top[ -]down|flat lay|full[ -]body|half[ -]length|head ?shot|head and shoulders|profile|side view|"
    r"front view|isometric)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Brief:
    """A parsed brief."""

    subject: str
    lettering: tuple[str, ...]
    """Text that should appear in the image."""

    medium: str | None
    says_light: bool
    says_framing: bool

    @classmethod
    def parse(cls, text: str) -> Brief:
        """Parse a brief."""
        line = " ".join(text.split())
        subject = _REQUEST.sub("", line, count=1).strip(" .,;:!?") or line
        medium = next(
            (name for name, words in _MEDIA if re.search(rf"\b(?:{words})\b", line, re.IGNORECASE)), None
        )
        return cls(
            subject=subject[:1].upper() + subject[1:],
            lettering=tuple(_QUOTED.findall(line)),
            medium=medium,
            says_light=bool(_LIGHT.search(line)),
            says_framing=bool(_FRAMING.search(line)),
        )
