"""What the model reads: a summary that fits, and examples that hold."""

from __future__ import annotations

import re

import jsonschema_rs
from jackfield import strict_json
from jackfield.registry.arguments import compile_schema, violations

from jackfield_builder.drafts import GUIDE, Draft
from jackfield_builder.findings import Code
from jackfield_builder.guides import MAX_SUMMARY, Example

# Where a block stops being JSON, counted from its first line.
_IN_BLOCK = re.compile(r"line (\d+)(, column \d+)")


def check(draft: Draft) -> None:
    """A summary of at most 250 characters; every example parses and validates."""
    guide = draft.guide
    if guide is None:
        return
    if not guide.summary:
        draft.report(Code.NO_SUMMARY, "no paragraph outside headings, lists and code", file=GUIDE)
    elif len(guide.summary) > MAX_SUMMARY:
        message = f"{len(guide.summary)} characters, at most {MAX_SUMMARY}"
        draft.report(Code.LONG_SUMMARY, message, file=GUIDE)
    if not guide.calls:
        draft.report(Code.NO_EXAMPLE, "no block tagged json", file=GUIDE)
    _check_examples(draft, guide.calls, draft.parameters, Code.INVALID_EXAMPLE)
    _check_examples(draft, guide.results, draft.returns, Code.INVALID_RESULT)


def _check_examples(
    draft: Draft, examples: tuple[Example, ...], schema: dict[str, object] | None, code: Code
) -> None:
    validator = _validator(schema)
    for example in examples:
        try:
            instance = strict_json.loads(example.text.rstrip())
        except strict_json.StrictJsonError as error:
            _report_json(draft, example, error)
            continue
        if validator is None or (code is Code.INVALID_EXAMPLE and not isinstance(instance, dict)):
            continue
        for violation in violations(validator, instance, schema):
            where = "" if violation.path == "/" else f"{violation.path}: "
            draft.report(code, f"{where}{violation.message}", file=GUIDE, path=f"line {example.line}")


def _report_json(draft: Draft, example: Example, error: strict_json.StrictJsonError) -> None:
    for fault in error.faults:
        syntax = _IN_BLOCK.fullmatch(fault.where)
        if syntax:
            message, path = fault.message, f"line {example.line + int(syntax[1]) - 1}{syntax[2]}"
        else:
            message, path = f"{fault.where}: {fault.message}", f"line {example.line}"
        draft.report(Code.BAD_EXAMPLE_JSON, message, file=GUIDE, path=path)


def _validator(schema: dict[str, object] | None) -> jsonschema_rs.Draft202012Validator | None:
    """The schema compiled, unless it is missing or wrong itself, which the parameters check says."""
    if schema is None:
        return None
    try:
        return compile_schema(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return None
