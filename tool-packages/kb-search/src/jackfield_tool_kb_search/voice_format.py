"""Results for voice: short, without markup."""

from __future__ import annotations

from typing import Any

from jackfield.speech import LINE, VOICE_LIMIT, characters, plain, short_facts

from jackfield_tool_kb_search.results import shortened

_SNIPPETS = (300, 200, 120, 60)
_FACTS = 4


def shorten_for_voice(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Shorten the texts until the results fit, then drop the last results."""
    for limit in _SNIPPETS:
        kept = [_short(each, limit) for each in results]
        if characters(kept) <= VOICE_LIMIT:
            return kept
    while len(kept) > 1 and characters(kept) > VOICE_LIMIT:
        kept.pop()
    return kept


def _short(result: dict[str, Any], snippet: int) -> dict[str, Any]:
    kept = {**result, "title": shortened(plain(result["title"]), LINE)}
    if kept.get("snippet"):
        kept["snippet"] = shortened(plain(kept["snippet"]), snippet)
    if len(kept.get("url") or "") > LINE:
        kept["url"] = None
    if "citation" in kept:
        kept["citation"] = shortened(plain(kept["citation"]), LINE)
    if "metadata" in kept:
        kept["metadata"] = short_facts(kept["metadata"], _FACTS) if snippet > LINE else {}
    return kept
