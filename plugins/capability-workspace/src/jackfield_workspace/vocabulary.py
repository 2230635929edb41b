"""Whether somebody asked for a change to a file in so many words.

It decides only whether the user is asked once more, so what is doubtful counts as not asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

VERBS = (
    "add", "adjust", "append", "apply", "change", "clean", "comment", "correct", "create", "delete", "draft",
    "edit", "fill", "fix", "format", "generate", "implement", "insert", "make", "mend", "modify", "move",
    "note", "patch", "put", "refactor", "remove", "rename", "replace", "rewrite", "save", "set", "shorten",
    "simplify", "start", "store", "swap", "translate", "update", "write",
)  # fmt: skip
"""What asks for a change; a file has to be named in the same sentence."""

NEGATIONS = (
    "not", "no", "never", "without", "don't", "dont", "doesn't", "didn't", "can't", "cannot", "won't",
    "wouldn't", "shouldn't", "needn't", "stop", "avoid", "except", "instead", "rather", "nothing", "neither",
    "nor", "before", "how", "why", "what", "when", "who", "which", "whether", "if", "did", "does", "was",
    "were", "is", "are", "has", "had", "should",
)  # fmt: skip
"""A sentence with one of these asks for nothing: it forbids, asks about, or tells of something."""

# A dot ends a sentence only where a space follows: names of files have dots too.
_SENTENCE = re.compile(r"[.!?;:,]+(?=\s|$)|\n+|\b(?:but|and then)\b")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_TAKEN_BACK = re.compile(r"\b(never ?mind|forget (it|that|about it)|scratch that|cancel|on second thought)\b")
_QUOTES = "`'\"()[]<>{}*.,;:!?\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb"
"""What people put around a name, or behind it."""

_SHORTEST_NAME = 3


@dataclass(frozen=True)
class FileVocabulary:
    """The words by which requests are known."""

    verbs: tuple[str, ...] = VERBS
    negations: tuple[str, ...] = NEGATIONS

    def asks_for(self, said: str, path: str) -> bool:
        """Whether these words ask for a change to the file at this path, and name it."""
        text = said.casefold().replace("\u2019", "'")
        if _TAKEN_BACK.search(text):
            return False
        return any(self._asks(sentence, path.casefold()) for sentence in _SENTENCE.split(text))

    def _asks(self, sentence: str, path: str) -> bool:
        named = [word for word in sentence.split() if _names(word, path)]
        if not named:
            return False
        # A file may be called `fix.md`: its name is not what asks.
        rest = " ".join(word for word in sentence.split() if word not in named)
        spoken = set(_WORD.findall(rest))
        return not spoken.isdisjoint(self.verbs) and spoken.isdisjoint(self.negations)


def _names(word: str, path: str) -> bool:
    """A path, or as much of its end as people say; `app.py` stands for `src/app.py`."""
    # Behind the prefix, because a name may begin with a dot: `.gitignore`.
    name = word.lstrip(_QUOTES.replace(".", "")).removeprefix("./").rstrip(_QUOTES)
    return len(name) >= _SHORTEST_NAME and (path == name or path.endswith(f"/{name}"))
