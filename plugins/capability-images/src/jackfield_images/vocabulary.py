"""Decides whether the user's words ask for an image.

The answer only decides whether the user is asked for confirmation, so doubtful requests count as not asked:
questions about images, withdrawn wishes, images that exist already, anything after a negation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

VERBS = (
    "create", "design", "generate", "get", "give", "make", "produce", "put together", "render", "send",
    "show", "can i get", "can i have", "can i see", "can we get", "can we have", "can we see",
    "could i get", "could i have", "could i see", "could we have", "may i have", "how about", "what about",
    "want", "need", "would like", "would love", "d like", "d love", "could use", "want to see", "like to see",
    "love to see",
)  # fmt: skip
"""Verbs and phrases that ask for something, if an image is named with them; `'d` is the word `d`."""

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
"""Wishes; they count only if the speaker makes them (`I want`)."""

DRAWING_VERBS = ("draw", "paint", "sketch", "illustrate", "doodle")
"""Verbs that ask for an image without a noun."""

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
"""After one of these words the rest of the sentence asks for nothing."""

QUESTIONS = frozenset(
    {"how", "why", "when", "where", "what", "who", "whose", "which", "whether", "if", "did", "does", "do"}
    | {"was", "were", "is", "are", "has"}
)
"""After one of these words a verb belongs to a question or a report."""

SUBJECTS = frozenset(
    {"i", "we", "they", "he", "she", "it", "who", "that", "this", "these", "those", "people"}
)
"""Subjects; right before a verb they mean that another person acts."""

OPENINGS = frozenset({"the", "this", "that", "these", "those", "my", "our", "your", "his", "her", "their"})
"""First words of statements that are not requests."""

APART = frozenset(
    {"of", "from", "in", "about", "for", "on", "with", "into", "to", "the", "this", "that", "these", "those"}
    | {"your", "his", "its", "their"}
)
"""Between verb and noun these mean something other than a new image."""

QUANTITIES = frozenset(
    {"couple", "set", "series", "pair", "bunch", "number", "lot", "kind", "sort", "three", "few"}
)
"""Quantities before `of`: `a couple of pictures` are pictures."""

FIGURES_OF_SPEECH = frozenset(
    {"conclusion", "conclusions", "up", "on", "upon", "from", "out", "attention", "distinction", "parallel"}
    | {"inspiration", "point", "lots"}
)
"""Objects that are drawn, sketched or illustrated without an image."""

ARTICLES = frozenset({"a", "an", "another", "one", "more", "please", "and", "now", "just", "some"})
"""Words that may precede an image that is named without a verb."""

_TAKEN_BACK = re.compile(
    r"\b(never ?mind|forget (it|that|about it)|no thanks?|scratch that|cancel|on second thought)\b"
)
_SENTENCE = re.compile(r"[.!?;:\n]+|\bbut\b")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_REACH = 8
"""The maximum number of words between the verb and the noun."""


class _Found(NamedTuple):
    """A word or short phrase of a sentence: its start, and the start of the next word."""

    start: int
    end: int
    phrase: str


@dataclass(frozen=True)
class ImageVocabulary:
    """The words that mark a request for an image."""

    verbs: tuple[str, ...] = VERBS
    drawing_verbs: tuple[str, ...] = DRAWING_VERBS
    nouns: tuple[str, ...] = NOUNS
    negations: tuple[str, ...] = NEGATIONS

    def asks_for_picture(self, said: str) -> bool:
        """Return whether the words ask for an image."""
        text = _folded(said)
        if _TAKEN_BACK.search(text):
            return False
        return any(self._asks(_WORD.findall(sentence)) for sentence in _SENTENCE.split(text))

    def _asks(self, full_prompt: list[str]) -> bool:
        negated = min((each.start for each in _find(full_prompt, self.negations)), default=len(full_prompt))
        heard = full_prompt[:negated]
        nouns = _find(heard, self.nouns)
        # `Zeichne nicht`: in other languages the negation follows the verb.
        drawn = [
            verb
            for verb in _find(heard, self.drawing_verbs)
            if negated == len(full_prompt) or negated - verb.end >= 2
        ]
        return (
            any(_draws(heard, verb) for verb in drawn)
            or any(_names(heard, verb, nouns) for verb in _find(heard, self.verbs))
            or (heard == full_prompt and _is_a_picture(heard, nouns))
        )


def _draws(full_prompt: list[str], verb: _Found) -> bool:
    """`Draw me a boat`: the verb is enough."""
    following = full_prompt[verb.end : verb.end + 3]
    return FIGURES_OF_SPEECH.isdisjoint(following) and _is_request(full_prompt, verb)


def _names(full_prompt: list[str], verb: _Found, nouns: list[_Found]) -> bool:
    """`Make me a nice picture`: the verb asks for the first noun after it."""
    behind = next((noun for noun in nouns if noun.start >= verb.end), None)
    if behind is not None:
        between = full_prompt[verb.end : behind.start]
        named = len(between) <= _REACH and not _are_apart(between)
    else:
        # Other languages put the verb last: `Kannst du mir ein Bild zeichnen`.
        named = bool(nouns) and verb.end >= len(full_prompt) - 1
    return named and _is_request(full_prompt, verb)


def _are_apart(between: list[str]) -> bool:
    for place, word in enumerate(between):
        is_quantity = word == "of" and place > 0 and between[place - 1] in QUANTITIES
        if word in APART and not is_quantity:
            return True
    return False


def _is_request(full_prompt: list[str], verb: _Found) -> bool:
    """Return whether the verb is addressed to the listener, not part of a report or a question."""
    before = full_prompt[: verb.start]
    if not before:
        return True
    if not QUESTIONS.isdisjoint(before) or before[0] in OPENINGS:
        return False
    if verb.phrase in WISHES:
        return not {"i", "we"}.isdisjoint(before)
    if before[-1] == "to":
        # `to make` counts only after a wish, not in `I used to make pictures`.
        return not {"want", "like", "need", "love"}.isdisjoint(before[-5:-1])
    return before[-1] not in SUBJECTS


def _is_a_picture(full_prompt: list[str], nouns: list[_Found]) -> bool:
    """`A picture of the harbour, please`: a request without a verb."""
    if not nouns or not QUESTIONS.isdisjoint(full_prompt):
        return False
    first = nouns[0]
    opens = ARTICLES.issuperset(full_prompt[: first.start])
    return opens and (full_prompt[first.end : first.end + 1] == ["of"] or "please" in full_prompt)


def _find(full_prompt: list[str], wanted: Iterable[str]) -> list[_Found]:
    """Find words and short phrases in a sentence, in order."""
    known = {tuple(each.split()): each for each in wanted}
    sizes = sorted({len(each) for each in known})
    return [
        _Found(start, start + size, known[phrase])
        for start in range(len(full_prompt))
        for size in sizes
        if len(phrase := tuple(full_prompt[start : start + size])) == size and phrase in known
    ]


def _folded(text: str) -> str:
    straight = text.casefold().replace("\u2019", "'").replace("\u2018", "'")
    # `I'd like` becomes two words, so that it differs from `I like pictures`.
    return re.sub(r"'d\b", " d", straight)
