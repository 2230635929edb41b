"""Something that was done, told by what it is called and when it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield_local.language.moments import span
from jackfield_local.language.words import spoken_name
from jackfield_local.planner.telling.told import Manners
from jackfield_local.planner.telling.values import sentence, worded

_STATES = {"existed": "already there", "exists": "already there", "ok": "done", "success": "done"}


def tell_deed(data: Mapping[str, Any], manners: Manners) -> str:
    """Such as "Created: Dentist, Monday 16 November, 8:00 to 9:00."; empty when the result is no deed."""
    state = data.get("status")
    title = next((str(data[key]) for key in ("title", "name", "path") if data.get(key)), "")
    when = _when(data, manners)
    if not (isinstance(state, str) and state) and not (title and when):
        return ""
    done = _STATES.get(str(state).lower(), spoken_name(str(state))) if state else ""
    what = ", ".join(filter(None, (title, when)))
    first = sentence(": ".join(filter(None, (done, what))))
    return " ".join([first, *_besides(data, manners)])


def standing(envelope: Mapping[str, Any], manners: Manners) -> str:
    """What stays of a call that was made, should another be made in its place; empty where nothing does."""
    data, error = envelope.get("data"), envelope.get("error")
    if isinstance(error, Mapping) and error.get("type") == "CONFIRMATION_REQUIRED":
        return "The one before still waits for your word; decline it if you no longer want it."
    done = isinstance(data, Mapping) and bool(tell_deed(data, manners))
    return "This makes a new one; what was done before stays as it is." if done else ""


def _when(data: Mapping[str, Any], manners: Manners) -> str:
    start, end = data.get("start"), data.get("end")
    if isinstance(start, str) and isinstance(end, str):
        return span(start, end, manners.zone, brief=False)
    return worded(start, manners) if isinstance(start, str) else ""


def _besides(data: Mapping[str, Any], manners: Manners) -> list[str]:
    """Who has to do with it, and where it is found."""
    told = []
    for key, value in data.items():
        of_words = isinstance(value, list) and all(isinstance(each, str) for each in value)
        link = isinstance(value, str) and "://" in value
        if (of_words and key not in ("notices", "notes", "warnings", "missing")) or link:
            text = worded(value, manners)
            name = spoken_name(key).removesuffix(" url") if link else spoken_name(key)
            told += [sentence(f"{name}: {text}")] if text else []
    return told
