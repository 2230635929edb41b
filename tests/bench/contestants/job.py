"""The call that every contestant answers: its parameters, one set of arguments, and what the search finds."""

from __future__ import annotations

from typing import Any

TOOL = "kb_search"

NAMESPACES = ("studio", "personal", "public")
TYPES = ("project", "person", "process", "link", "doc")
FIELDS = ("id", "type", "title", "snippet", "score", "url")

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "description": "What to look for.", "minLength": 1, "maxLength": 200},
        "namespace": {
            "type": "string",
            "description": "Where to look.",
            "enum": list(NAMESPACES),
            "default": "studio",
        },
        "filters": {
            "type": "object",
            "description": "What to leave out.",
            "additionalProperties": False,
            "properties": {
                "type": {"type": "string", "enum": list(TYPES)},
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 50}, "maxItems": 5},
                "date_range": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "from": {"type": "string", "format": "date"},
                        "to": {"type": "string", "format": "date"},
                    },
                },
            },
        },
        "top_k": {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 10, "default": 5},
        "return_fields": {
            "type": "array",
            "description": "What to return of each.",
            "items": {"type": "string", "enum": list(FIELDS)},
        },
        "include_snippets": {"type": "boolean", "description": "Whether with texts.", "default": True},
    },
}

ARGUMENTS = (
    '{"query":"who founded the studio in Lisbon","filters":{"type":"person","tags":["founder"]},"top_k":5}'
)

WRONG = {
    "a number out of range": '{"query":"who","top_k":11}',
    "a text for a number": '{"query":"who","top_k":"7"}',
    "a value that is not in the list": '{"query":"who","namespace":"elsewhere"}',
    "an unknown argument": '{"query":"who","limit":7}',
    "too many tags": '{"query":"who","filters":{"tags":["a","b","c","d","e","f"]}}',
    "a day that never was": '{"query":"who","filters":{"date_range":{"from":"2026-02-30"}}}',
}
"""Arguments that the parameters do not allow, by what is wrong with them."""

_ITEMS = [
    {
        "id": f"person:{number}",
        "type": "person",
        "title": f"Person {number}",
        "snippet": "Founder of a studio in Lisbon.",
        "score": 0.9 - number / 10,
        "source_type": "crm",
        "last_updated": "2026-01-10",
        "url": f"https://example.org/people/{number}",
        "metadata": {"role": "founder"},
    }
    for number in range(5)
]


def evidence(top_k: int) -> dict[str, Any]:
    """What the search finds; it takes no time, so that what is measured is the way to it and back."""
    return {"items": _ITEMS[:top_k], "total": 5}


def found(result: str) -> bool:
    """Whether a result holds evidence, in whatever envelope."""
    return '"person:0"' in result
