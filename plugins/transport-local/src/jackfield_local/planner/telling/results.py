"""Any other result: its own words where it has some, its lists, and its plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield_local.language.moments import placed, readable, span
from jackfield_local.language.words import spoken_name
from jackfield_local.planner.telling.deeds import tell_deed
from jackfield_local.planner.telling.evidence import is_evidence, tell_evidence
from jackfield_local.planner.telling.passages import tell_passage
from jackfield_local.planner.telling.told import Manners, Told
from jackfield_local.planner.telling.values import sentence, values

_VERBATIM = "say"
_SUMMING_UP = ("text", "formatted", "summary", "message", "answer", "result")
_REMARKS = ("notices", "note", "notes", "hint", "hints", "warnings")
_OFFERED = ("available", "free", "open", "results", "options", "suggest", "variants", "records", "people")
_MOST_LISTED = {"text": 8, "voice": 3}
_MOST_CHARACTERS = 4000
_LONGEST_LINE = 160


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
    if isinstance(data.get(_VERBATIM), str) and data[_VERBATIM].strip():
        return Told(data[_VERBATIM])
    passage = tell_passage(data, question, manners) if placed(data) is None else ""
    lists = {key: value for key, value in data.items() if _listable(key, value)}
    offered = _offered(lists)
    parts = [passage] if passage else _summed_up(data, manners)
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
        parts.append(_plainly(data, manners))
    parts += [_remark(data[key], manners) for key in _REMARKS if data.get(key)]
    parts += [f"Not found: {', '.join(map(str, data['missing']))}."] if data.get("missing") else []
    return Told(manners.gap.join(filter(None, parts)), main.items, main.quoted)


def _summed_up(data: Mapping[str, Any], manners: Manners) -> list[str]:
    """What a result says of itself, or what was done."""
    if time := placed(data):
        return [time]
    said = [_remark(data[key], manners) for key in _SUMMING_UP if isinstance(data.get(key), str)]
    return said or [*filter(None, [tell_deed(data, manners)])]


def _plainly(data: Mapping[str, Any], manners: Manners) -> str:
    if _VERBATIM in data:
        return ""  # Who has a place for words and leaves it empty has nothing to say.
    shown = {key: value for key, value in data.items() if key not in (*_REMARKS, "missing")}
    lists = [value for value in shown.values() if isinstance(value, list)]
    return "Nothing was found." if lists and not any(lists) else sentence(values(shown, manners))


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
        what = "" if key == "results" else f": there are no {spoken_name(key)}"
        return Told(f"Nothing was found{what}.")
    if is_evidence(items):
        return tell_evidence(items, question, manners)
    name = spoken_name(key)
    label = name[:1].upper() + name[1:]
    most = _MOST_LISTED[manners.mode]
    lines = [_line(each, manners) for each in items[:most]]
    more = f" and {len(items) - most} more" if len(items) > most else ""
    kept = [each for each in items if isinstance(each, Mapping)]
    if not any(lines):
        return Told(f"{len(items)} {name.removesuffix('s') if len(items) == 1 else name}.", kept)
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
    if isinstance(item.get("path"), str) and not named:
        return _located(item, manners)
    if named:
        body = item.get("prompt") or item.get("snippet") or item.get("description")
        return f"{named[0]}: {body}" if body and not manners.spoken else named[0]
    return values(item, manners)


def _located(item: Mapping[str, Any], manners: Manners) -> str:
    """A file, or a line of one."""
    path, line, text = item["path"], item.get("line"), str(item.get("text") or "").strip()
    if manners.spoken or not (isinstance(line, int) and text):
        return str(path)
    return f"{path}:{line}: {text[:_LONGEST_LINE]}"


def _remark(value: Any, manners: Manners) -> str:
    said = [str(each) for each in value] if isinstance(value, list) else [str(value)]
    return readable(" ".join(said), manners.zone)
