"""Builds prompt variants: the brief's choices are kept, and the variant number decides the rest."""

from __future__ import annotations

from typing import Any

from jackfield_tool_image_draft_prompt import axes
from jackfield_tool_image_draft_prompt.axes import Framing
from jackfield_tool_image_draft_prompt.brief import Brief

_AS_THE_BRIEF_SAYS = Framing("framing of the brief", "Framed as described")
_NO_LETTERING = "lettering, watermarks, signatures"
_MOST_AVOIDED = 500


def prompt_variants(args: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the variants of a brief, from the plainest to the boldest."""
    brief = Brief.parse(args["brief"])
    shape = args.get("shape") or axes.SHAPES[args["purpose"]]
    avoid = _avoided(args["avoid"], brief)
    return [
        {**_variant(brief, args, number), "avoid": avoid, "shape": shape}
        for number in range(args["variants"])
    ]


def _variant(brief: Brief, args: dict[str, Any], number: int) -> dict[str, Any]:
    medium = args.get("style") or brief.medium
    mood = args.get("mood")
    # If each variant has its own medium, each uses its plainest treatment.
    named, treatment = (medium, number) if medium else (axes.ONE_OF_EACH[number], 0)
    style = axes.MEDIA[named][treatment]
    if notes := args.get("style_notes", "").strip(" ."):
        style = f"{style}, {notes}"
    framing = _AS_THE_BRIEF_SAYS if brief.says_framing else axes.FRAMINGS[args["purpose"]][number]
    light = _light(brief, mood, named, number)
    parts = {
        "subject": brief.subject,
        "style": style,
        "framing": framing.text,
        "light": light,
        "mood": mood,
    }
    sentences = [brief.subject, style, framing.text, light]
    if mood:
        sentences.append(f"The mood is {mood}")
    if brief.lettering:
        words = " and ".join(f'"{each}"' for each in brief.lettering)
        sentences.append(
            f"The lettering reads exactly {words}, large and well spaced, and there is no other text"
        )
    return {
        "title": f"{_spoken(named)}, {framing.name}",
        "prompt": " ".join(f"{each}." for each in sentences),
        "parts": parts,
    }


def _light(brief: Brief, mood: str | None, medium: str, number: int) -> str:
    if medium in axes.UNLIT:
        return axes.TONES[number]
    if brief.says_light:
        return axes.LIT_BY_THE_BRIEF[number]
    return (axes.LIGHTS[mood] if mood else axes.ANY_LIGHT)[number]


def _avoided(asked: list[str], brief: Brief) -> str:
    """Return the things to avoid: those named, and common flaws unless they were requested."""
    usual = "watermarks, signatures" if brief.lettering else _NO_LETTERING
    listed: dict[str, str] = {}
    for each in (*asked, *usual.split(", ")):
        named = " ".join(each.split()).strip(" .,")
        # Repeating an item would give it more weight.
        listed.setdefault(named.casefold(), named)
    kept = [each for each in listed.values() if each]
    while len(", ".join(kept)) > _MOST_AVOIDED:
        kept.pop()
    return ", ".join(kept)


def _spoken(medium: str) -> str:
    return {"render_3d": "3D rendering", "flat": "flat graphic"}.get(medium, medium.replace("_", " "))
