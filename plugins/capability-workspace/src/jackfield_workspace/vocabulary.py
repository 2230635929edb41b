"""Decides whether the user's words ask for a change to a file by its name.

The answer only decides whether the user is asked for confirmation, so doubtful requests count as not asked.
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
"""Verbs that ask for a change, if the file is named in the same sentence."""

NEGATIONS = (
    "not", "no", "never", "without", "don't", "dont", "doesn't", "didn't", "can't", "cannot", "won't",
    "wouldn't", "shouldn't", "needn't", "stop", "avoid", "except", "instead", "rather", "nothing", "neither",
    "nor", "before", "how", "why", "what", "when", "who", "which", "whether", "if", "did", "does", "was",
    "were", "is", "are", "has", "had", "should",
)  # fmt: skip
"""Words that turn a sentence into a prohibition, a question or a report."""

# A dot ends a sentence only before a space, because file names contain dots.
_SENTENCE = re.compile(r"[.!?;:,]+(?=\s|$)|\n+|\b(?:but|and then)\b")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_TAKEN_BACK = re.compile(r"\b(never ?mind|forget (it|that|about it)|scratch that|cancel|on second thought)\b")
_QUOTES = "`'\"()[]<>{}*.,;:!?\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb"
"""Quotes and punctuation around a file name."""

_SHORTEST_NAME = 3


@dataclass(frozen=True)
class FileVocabulary:
    """The words that mark a request."""

    verbs: tuple[str, ...] = VERBS
    negations: tuple[str, ...] = NEGATIONS

    def asks_for(self, said: str, path: str) -> bool:
        """Return whether the words name the file at this path and ask for a change to it."""
        text = said.casefold().replace("\u2019", "'")
        if _TAKEN_BACK.search(text):
            return False
        return any(self._asks(sentence, path.casefold()) for sentence in _SENTENCE.split(text))

    def _asks(self, sentence: str, path: str) -> bool:
        named = [word for word in sentence.split() if _names(word, path)]
        if not named:
            return False
        # The name itself must not count as a verb: a file may be called `fix.md`.
        rest = " ".join(word for word in sentence.split() if word not in named)
        spoken = set(_WORD.findall(rest))
        return not spoken.isdisjoint(self.verbs) and spoken.isdisjoint(self.negations)


def _names(word: str, path: str) -> bool:
    """Return whether a word is the path or its end: `app.py` matches `src/app.py`."""
    # A leading dot stays, because a name may begin with one: `.gitignore`.
    name = word.lstrip(_QUOTES.replace(".", "")).removeprefix("./").rstrip(_QUOTES)
    return len(name) >= _SHORTEST_NAME and (path == name or path.endswith(f"/{name}"))
