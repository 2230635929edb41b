"""The English words of a request to write or change a file."""

from __future__ import annotations

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
