"""The axes of variation: media and their treatments, framings for each purpose, light for each mood.

Every list goes from the plainest to the boldest choice, and variant n takes the n-th entry of each, so that
variants never differ by chance and a person can choose the closest one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Framing(NamedTuple):
    """A framing of the subject."""

    name: str
    text: str


MEDIA: Mapping[str, tuple[str, str, str, str]] = {
    "photo": (
        "Photograph in natural colours with fine detail, as through a 35 mm lens",
        "Photograph with shallow depth of field, as through an 85 mm lens, the background softly blurred",
        "Studio photograph on a plain backdrop, crisp edges and true colours",
        "Photograph on grainy analogue film with muted colours and deep shadows",
    ),
    "illustration": (
        "Digital illustration with clean outlines and soft shading",
        "Storybook illustration in gouache with visible brush texture",
        "Bold editorial illustration in a palette of four colours",
        "Illustration in the manner of a screen print, with overlapping inks and paper grain",
    ),
    "watercolour": (
        "Loose watercolour on cold-pressed paper with soft edges",
        "Watercolour with fine ink lines over it",
        "Watercolour in two or three colours with large areas of white paper",
        "Wet-in-wet watercolour with strong pigment and running edges",
    ),
    "painting": (
        "Oil painting with visible brushwork and balanced colours",
        "Oil painting with thick paint laid on by a palette knife",
        "Painting in flat areas of gouache with simplified forms",
        "Oil painting with strong contrast of light and dark",
    ),
    "line_art": (
        "Black ink line drawing on white, even line weight, no shading",
        "Pencil drawing with light hatching",
        "One continuous line on white, reduced to the essential",
        "Woodcut print in black and white with carved texture",
    ),
    "flat": (
        "Flat vector illustration with geometric shapes and no gradients",
        "Flat vector illustration with thin outlines and one accent colour",
        "Flat design of two colours and generous empty space",
        "Isometric flat illustration with crisp edges",
    ),
    "render_3d": (
        "3D rendering with realistic materials and soft global light",
        "3D rendering in matte clay of one colour",
        "3D rendering with rounded toy-like shapes and bright plastic",
        "3D rendering as a miniature model with tilt-shift blur",
    ),
    "pixel_art": (
        "Pixel art with a limited palette and clear outlines",
        "Pixel art in the manner of 16-bit games, with dithered shading",
        "Pixel art icon on a small grid, few colours",
        "Isometric pixel art scene with much small detail",
    ),
}
"""Treatments of each medium."""

ONE_OF_EACH = ("photo", "illustration", "watercolour", "flat")
"""The media of the variants if the brief names none."""

FRAMINGS: Mapping[str, tuple[Framing, Framing, Framing, Framing]] = {
    "general": (
        Framing(
            "wide view",
            "Wide view at eye level: the subject takes a third of the frame, the surroundings visible",
        ),
        Framing(
            "close view", "Close view: the subject fills most of the frame, with clear texture and expression"
        ),
        Framing("centred", "The subject centred and whole before a simple background, a clear silhouette"),
        Framing("unusual angle", "Seen from low below or high above, with strong diagonal lines"),
    ),
    "banner": (
        Framing(
            "subject on the right",
            "Wide banner: the subject in the right third, calm empty space on the left",
        ),
        Framing(
            "subject on the left", "Wide banner: the subject in the left third, calm empty space on the right"
        ),
        Framing("panorama", "Panorama with a low horizon, the subject small in the middle distance"),
        Framing("cropped detail", "A detail of the subject cropped boldly at one edge, the rest left empty"),
    ),
    "poster": (
        Framing(
            "headline space",
            "Tall poster: the subject in the lower two thirds, a calm area on top for a headline",
        ),
        Framing("monumental", "Tall poster: the subject seen from slightly below, filling the height"),
        Framing("one symbol", "Tall poster: the subject reduced to one large centred shape, wide margins"),
        Framing("overlap", "Tall poster: foreground and background layered, the subject breaking the frame"),
    ),
    "product": (
        Framing(
            "three-quarter view",
            "The product whole in three-quarter view on a plain surface, slightly from above",
        ),
        Framing(
            "detail", "Close view of the product's most distinctive detail, the rest falling out of focus"
        ),
        Framing(
            "in use", "The product in use in its natural surroundings, still the sharpest thing in the frame"
        ),
        Framing(
            "from above",
            "Flat lay: the product straight from above, with two or three things that go with it",
        ),
    ),
    "person": (
        Framing("head and shoulders", "Head and shoulders at eye level, the eyes on the upper third"),
        Framing("half length", "Half length, turned slightly to one side, hands visible"),
        Framing("in surroundings", "Full figure in surroundings that show what the person does"),
        Framing("profile", "Profile against a plain background, a strong outline"),
    ),
    "icon": (
        Framing("front view", "One centred object from the front with even margins, readable at small size"),
        Framing(
            "three-quarter view", "One centred object in three-quarter view with even margins, readable small"
        ),
        Framing("negative space", "One symbol formed by negative space inside a simple shape"),
        Framing("badge", "One symbol inside a round badge, symmetrical"),
    ),
    "social": (
        Framing("centred", "The subject large and centred with room to crop on every side"),
        Framing("close view", "Close view that reads at a glance on a small screen"),
        Framing("with empty space", "The subject in the lower half, the upper half empty for a caption"),
        Framing("from above", "Straight from above, arranged in a simple pattern"),
    ),
}
"""Framings for each purpose."""

SHAPES: Mapping[str, str] = {
    "general": "square",
    "banner": "landscape",
    "poster": "portrait",
    "product": "square",
    "person": "portrait",
    "icon": "square",
    "social": "square",
}

ANY_LIGHT = (
    "Soft daylight from a clear sky with gentle shadows",
    "Low warm light from the side with long shadows",
    "Even, shadowless light",
    "Light from behind that draws a bright edge around the subject",
)

LIGHTS: Mapping[str, tuple[str, str, str, str]] = {
    "calm": (
        "Soft overcast light without hard shadows",
        "Pale early light with a little haze",
        "Even, shadowless light in muted tones",
        "The last light after sunset, blue and still",
    ),
    "cheerful": (
        "Bright sunny daylight with fresh colours",
        "Warm afternoon sun with playful patches of light",
        "Even bright light with saturated colours",
        "Sparkling light from behind with small highlights",
    ),
    "dramatic": (
        "Hard light from one side with deep shadows",
        "Stormy light that breaks through dark clouds",
        "A single strong light from above, the rest in darkness",
        "Light from behind, the subject almost a silhouette",
    ),
    "mysterious": (
        "Dim light in thin fog, edges fading away",
        "Moonlight with cold highlights",
        "A small light source inside the scene, everything else dark",
        "Light through leaves or blinds that falls in broken patterns",
    ),
    "warm": (
        "Golden light of late afternoon",
        "Light of lamps and candles, soft and close",
        "Warm even light with cream and amber tones",
        "Low sun from behind with a glowing edge",
    ),
    "clean": (
        "Bright, neutral, even light",
        "Soft light from a large window on one side",
        "White surroundings with almost no shadow",
        "Crisp light from above with one small clear shadow",
    ),
}
"""Light for each mood."""

LIT_BY_THE_BRIEF = (
    "The light is that of the scene, natural and balanced",
    "The light is that of the scene, soft with low contrast",
    "The light is that of the scene, simplified to a few clear tones",
    "The light is that of the scene, pushed to strong contrast",
)
"""Light if the brief itself names the time or weather: variants differ only in contrast."""

UNLIT = frozenset({"line_art", "flat", "pixel_art"})
"""Media without light; their variants differ in tone."""

TONES = (
    "Clear, balanced tones",
    "Light tones with much air",
    "Two strong tones",
    "Dark ground with light shapes",
)
