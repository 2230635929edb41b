"""Checks guide.md: its summary, its examples, and whether it repeats the schema.

The model reads both the guide and the schema, so repeated words cost tokens twice. The check compares each
list item that begins with the name of an argument with everything the schema says about that argument:
descriptions, values, limits, defaults, names of members. An item repeats the schema if the schema contains at
least 80 % of its words. The guide repeats the schema if such items have at least half of the words of all
items about arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
from jackfield import strict_json
from jackfield.registry.arguments import compile_schema, violations

from jackfield_builder.findings import CheckCode
from jackfield_builder.tool_draft import MAX_SUMMARY, GuideExample, ToolDraft
from jackfield_builder.tool_files import GUIDE

# The place of a JSON syntax error, counted from the first line of the block.
_IN_BLOCK = re.compile(r"line (\d+)(, column \d+)")

_WORD = re.compile(r"\w+")
_BULLETS = ("- ", "* ")

ITEM_SHARE = 0.8
"""An item repeats the schema if at least this share of its words is in the schema."""

GUIDE_SHARE = 0.5
"""The guide repeats the schema if such items have at least this share of the words about arguments."""


def check(draft: ToolDraft) -> None:
    """Check that the summary is present and short, and that every example parses and validates."""
    guide = draft.guide
    if guide is None:
        return
    if not guide.summary:
        draft.report(CheckCode.NO_SUMMARY, "no paragraph outside headings, lists and code", file=GUIDE)
    elif len(guide.summary) > MAX_SUMMARY:
        message = f"it has {len(guide.summary)} characters; the maximum is {MAX_SUMMARY}"
        draft.report(CheckCode.LONG_SUMMARY, message, file=GUIDE)
    if not guide.calls:
        draft.report(CheckCode.NO_EXAMPLE, "no block tagged json", file=GUIDE)
    _check_examples(draft, guide.calls, draft.parameters, CheckCode.INVALID_EXAMPLE)
    _check_examples(draft, guide.results, draft.returns, CheckCode.INVALID_RESULT)


def _check_examples(
    draft: ToolDraft, examples: tuple[GuideExample, ...], schema: dict[str, object] | None, code: CheckCode
) -> None:
    validator = _validator(schema)
    for example in examples:
        try:
            instance = strict_json.loads(example.text.rstrip())
        except strict_json.StrictJsonError as error:
            _report_json(draft, example, error)
            continue
        if validator is None or (code is CheckCode.INVALID_EXAMPLE and not isinstance(instance, dict)):
            continue
        for violation in violations(validator, instance, schema):
            where = "" if violation.path == "/" else f"{violation.path}: "
            draft.report(code, f"{where}{violation.message}", file=GUIDE, path=f"line {example.line}")


def _report_json(draft: ToolDraft, example: GuideExample, error: strict_json.StrictJsonError) -> None:
    for fault in error.faults:
        syntax = _IN_BLOCK.fullmatch(fault.where)
        if syntax:
            message, path = fault.message, f"line {example.line + int(syntax[1]) - 1}{syntax[2]}"
        else:
            message, path = f"{fault.where}: {fault.message}", f"line {example.line}"
        draft.report(CheckCode.BAD_EXAMPLE_JSON, message, file=GUIDE, path=path)


def _validator(schema: dict[str, object] | None) -> jsonschema_rs.Draft202012Validator | None:
    """Compile a schema; return None if it is missing or invalid, which the parameters check reports."""
    if schema is None:
        return None
    try:
        return compile_schema(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return None


def check_repetition(draft: ToolDraft) -> None:
    """Report a guide that mostly repeats what the schema says about the arguments."""
    if draft.guide is None or not isinstance(draft.parameters, Mapping):
        return
    arguments = draft.parameters.get("properties")
    if not isinstance(arguments, Mapping):
        return
    total, repeated, names = 0, 0, []
    for argument, words in _argument_items(draft.guide.text, arguments):
        known = set(_words(argument)).union(_schema_words(arguments[argument]))
        total += len(words)
        if words and sum(word in known for word in words) >= ITEM_SHARE * len(words):
            repeated += len(words)
            names.append(argument)
    if repeated and repeated >= GUIDE_SHARE * total:
        share = f"{repeated} of the guide's {total} words about arguments"
        message = f"schema.json already contains {share}: {', '.join(names)}"
        draft.report(CheckCode.REPEATED_SCHEMA, message, file=GUIDE)


def _argument_items(guide: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the list items about one argument: its name, and the words after the colon."""
    for line in guide.splitlines():
        if not line.startswith(_BULLETS):
            continue
        head, _, rest = line[2:].partition(":")
        named = [name for name in arguments if name in set(_WORD.findall(head))]
        if len(named) == 1:
            yield named[0], _words(rest)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _schema_words(schema: Any) -> Iterator[str]:
    """Yield the words in a schema's values and the names of its properties, but no keywords."""
    if isinstance(schema, Mapping):
        for keyword, value in schema.items():
            if keyword in {"properties", "$defs"} and isinstance(value, Mapping):
                for name, member in value.items():
                    yield from _words(name)
                    yield from _schema_words(member)
            else:
                yield from _schema_words(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _schema_words(each)
    else:
        # A guide may write `true` or `True`; `_words` converts both to lower case.
        yield from _words(str(schema))
