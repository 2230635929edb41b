"""Any other result: its own words where it has some, its lists, and its plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield_local.planner.language.words import spoken_name
from jackfield_local.planner.telling.evidence import is_evidence, tell_evidence
from jackfield_local.planner.telling.moments import readable, span
from jackfield_local.planner.telling.told import Manners, Told

_VERBATIM = ("say",)
_SUMMING_UP = ("text", "summary", "message", "answer", "result")
_REMARKS = ("notices", "notes", "hint", "hints", "warnings")
_OFFERED = ("available", "free", "open", "results", "options", "suggest", "variants", "records", "people")
_MOST_LISTED = {"text": 8, "voice": 3}
_MOST_CHARACTERS = 4000


def tell(data: Any, question: str, manners: Manners) -> Told:
    """What a call came to."""
    told = _told(data, question, manners)
    text = told.text if len(told.text) <= _MOST_CHARACTERS else f"{told.text[:_MOST_CHARACTERS]} ..."
    return Told(text.strip() or "Done.", told.items, told.quoted)


def _told(data: Any, question: str, manners: Manners) -> Told:
    if isinstance(data, Mapping):
        return _of_object(data, question, manners)
    if isinstance(data, list):
        return _of_list("results", data, question, manners)
    return Told("Done." if data is None else readable(str(data), manners.zone))


def _of_object(data: Mapping[str, Any], question: str, manners: Manners) -> Told:
    for key in _VERBATIM:
        if isinstance(data.get(key), str) and data[key]:
            return Told(str(data[key]))
    lists = {key: value for key, value in data.items() if _listable(key, value)}
    offered = _offered(lists)
    parts = [_remark(data[key], manners) for key in _SUMMING_UP if isinstance(data.get(key), str)]
    parts += [
        _of_list(key, value, question, manners).text
        for key, value in lists.items()
        if value and key != offered
    ]
    main = Told("")
    if offered is not None:
        main = _of_list(offered, lists[offered], question, manners)
        parts.append(main.text)
    if not parts:
        parts.append(_values(data, manners))
    parts += [_remark(data[key], manners) for key in _REMARKS if data.get(key)]
    parts += [f"Not found: {', '.join(map(str, data['missing']))}."] if data.get("missing") else []
    return Told((" " if manners.spoken else "\n\n").join(filter(None, parts)), main.items, main.quoted)


def _listable(key: str, value: Any) -> bool:
    if not isinstance(value, list) or key in _REMARKS:
        return False
    # An empty list says that nothing was found only where something could have been.
    return isinstance(value[0], Mapping) if value else any(word in key for word in _OFFERED)


def _offered(lists: Mapping[str, Any]) -> str | None:
    """The list that the user can choose from."""
    named = [key for key in lists if any(word in key for word in _OFFERED)]
    filled = [key for key in lists if lists[key]]
    return next((key for key in [*named, *filled, *lists] if lists[key]), next(iter([*named, *lists]), None))


def _of_list(key: str, items: Sequence[Any], question: str, manners: Manners) -> Told:
    if not items:
        return Told(f"Nothing was found: there are no {spoken_name(key)}.")
    if is_evidence(items):
        return tell_evidence(items, question, manners)
    label = spoken_name(key)
    label = label[:1].upper() + label[1:]
    most = _MOST_LISTED[manners.mode]
    lines = [_line(each, manners) for each in items[:most]]
    more = f" and {len(items) - most} more" if len(items) > most else ""
    kept = [each for each in items if isinstance(each, Mapping)]
    if manners.spoken:
        return Told(f"{label}: {'; '.join(lines)}{more}.", kept)
    listed = "\n".join(f"{place}. {line}" for place, line in enumerate(lines, start=1))
    return Told(f"{label}:\n{listed}{more}", kept)


def _line(item: Any, manners: Manners) -> str:
    if not isinstance(item, Mapping):
        return readable(str(item), manners.zone)
    named = [str(item[key]) for key in ("title", "name") if item.get(key)]
    if isinstance(item.get("start"), str) and isinstance(item.get("end"), str):
        return ": ".join([span(item["start"], item["end"], manners.zone), *named[:1]])
    if named:
        body = item.get("prompt") or item.get("snippet") or item.get("description")
        return f"{named[0]}: {body}" if body and not manners.spoken else named[0]
    return _values(item, manners, closed=False)


def _values(data: Mapping[str, Any], manners: Manners, *, closed: bool = True) -> str:
    """Plain values as "name: value", without what is empty or only for machines."""
    told = [
        f"{spoken_name(key)}: {_value(value, manners)}"
        for key, value in data.items()
        if _tellable(value) and not (manners.spoken and key in ("id", "uid", "url", "iso"))
    ]
    text = ", ".join(told)
    return f"{text[:1].upper()}{text[1:]}." if closed and text else text


def _tellable(value: Any) -> bool:
    """Not what is empty, nor places in a text or other rows of numbers."""
    if isinstance(value, list):
        return bool(value) and not isinstance(value[0], (list, int, float))
    return value not in (None, "", {})


def _value(value: Any, manners: Manners) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return f"({_values(value, manners, closed=False)})"
    if isinstance(value, list):
        return "; ".join(_value(each, manners) for each in value[:5])
    return readable(str(value), manners.zone)


def _remark(value: Any, manners: Manners) -> str:
    said = [str(each) for each in value] if isinstance(value, list) else [str(value)]
    return readable(" ".join(said), manners.zone)
