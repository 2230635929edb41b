"""The handlers once more, this time imported, all in one process that is not the build's."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield_builder.drafts import HANDLER, Draft
from jackfield_builder.findings import Code
from jackfield_builder.probe import Probe, probe

_CODES = {
    "raised": Code.IMPORT_RAISES,
    "died": Code.IMPORT_DIES,
    "missing": Code.NO_EXECUTE,
    "uncallable": Code.BAD_SIGNATURE,
}


def check(drafts: Sequence[Draft]) -> None:
    """Every handler whose source was found sound can be imported and offers a callable `execute`."""
    candidates = {
        draft.source.handler.partition(":")[0]: draft
        for draft in drafts
        if draft.handler is not None and not draft.has(Code.BAD_SYNTAX, Code.NO_EXECUTE, Code.BAD_SIGNATURE)
    }
    outcomes = probe([Probe(module, draft.source.import_path) for module, draft in candidates.items()])
    for module, outcome in outcomes.items():
        if outcome.kind in _CODES:
            message = outcome.message or "execute is not a function"
            line = f"line {outcome.line}" if outcome.line else ""
            hint = "install what it imports" if message.startswith("ModuleNotFoundError") else ""
            candidates[module].report(_CODES[outcome.kind], message, file=HANDLER, path=line, hint=hint)
