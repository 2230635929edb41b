"""The name by which a provider knows a tool."""

from __future__ import annotations

import hashlib
import re

_DIGITS = 8


def wire_name(tool_id: str, *, legal: str, letters: str, longest: int) -> str:
    """The id itself where it is legal, else a legal name made from it that no other id shares.

    `legal` is the pattern of a whole name, `letters` the characters it may hold as a character class.
    """
    if len(tool_id) <= longest and re.fullmatch(legal, tool_id, re.ASCII):
        return tool_id
    digest = hashlib.sha256(tool_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    readable = re.sub(f"[^{letters}]", "_", tool_id, flags=re.ASCII)[: longest - _DIGITS - 1]
    name = f"{readable}_{digest}"
    # A first character that only later places allow.
    return name if re.fullmatch(legal, name, re.ASCII) else f"_{name}"[: longest - _DIGITS - 1] + f"_{digest}"
