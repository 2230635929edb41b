"""The English words of a request for a picture."""

from __future__ import annotations

VERBS = (
    "create", "design", "generate", "get", "give", "make", "produce", "put together", "render", "send",
    "show", "can i get", "can i have", "can i see", "can we get", "can we have", "can we see",
    "could i get", "could i have", "could i see", "could we have", "may i have", "how about", "what about",
    "want", "need", "would like", "would love", "d like", "d love", "could use", "want to see", "like to see",
    "love to see",
)  # fmt: skip
"""What asks for something; a picture has to be named with it. `'d` is written as a word, `d`."""

WISHES = frozenset(
    {
        "want",
        "need",
        "would like",
        "would love",
        "d like",
        "d love",
        "could use",
        "want to see",
        "like to see",
        "love to see",
    }
)
"""Of these, only the speaker's own ask for anything."""

DRAWING_VERBS = ("draw", "paint", "sketch", "illustrate", "doodle")
"""What asks for a picture whatever follows."""

NOUNS = (
    "picture", "pictures", "image", "images", "drawing", "drawings", "illustration", "illustrations", "photo",
    "photos", "photograph", "photographs", "pic", "pics", "sketch", "sketches", "painting", "paintings",
    "artwork", "logo", "logos", "icon", "icons", "poster", "posters", "cartoon", "cartoons", "portrait",
    "portraits", "wallpaper", "banner", "graphic", "graphics", "infographic", "visual", "visuals",
    "rendering", "mockup", "watercolor", "watercolour", "comic", "avatar", "thumbnail", "sticker", "meme",
)  # fmt: skip

NEGATIONS = (
    "not", "no", "never", "without", "don't", "dont", "doesn't", "didn't", "can't", "cannot", "won't",
    "wouldn't", "shouldn't", "needn't", "stop", "avoid", "instead of", "rather than", "nothing", "neither",
    "nor",
)  # fmt: skip
"""Behind one of these, in the same sentence, nothing is asked for."""

QUESTIONS = frozenset(
    {"how", "why", "when", "where", "what", "who", "whose", "which", "whether", "if", "did", "does", "do"}
    | {"was", "were", "is", "are", "has"}
)
"""Behind one of these a verb is asked about, or told of."""

SUBJECTS = frozenset(
    {"i", "we", "they", "he", "she", "it", "who", "that", "this", "these", "those", "people"}
)
"""Whoever stands right before a verb does it himself."""

OPENINGS = frozenset({"the", "this", "that", "these", "those", "my", "our", "your", "his", "her", "their"})
"""What opens a statement about something, and no request."""

APART = frozenset(
    {"of", "from", "in", "about", "for", "on", "with", "into", "to", "the", "this", "that", "these", "those"}
    | {"your", "his", "its", "their"}
)
"""Between a verb and a picture these say that something else is asked for, or a picture that is there."""

QUANTITIES = frozenset(
    {"couple", "set", "series", "pair", "bunch", "number", "lot", "kind", "sort", "three", "few"}
)
"""`A couple of pictures` are pictures."""

FIGURES_OF_SPEECH = frozenset(
    {"conclusion", "conclusions", "up", "on", "upon", "from", "out", "attention", "distinction", "parallel"}
    | {"inspiration", "point", "lots"}
)
"""What is drawn, sketched or illustrated without a picture."""

ARTICLES = frozenset({"a", "an", "another", "one", "more", "please", "and", "now", "just", "some"})
"""What may stand before a picture that is named without a verb."""
