"""Checks the types in a handler's signature, and takes from them the schemas that schema.json omits."""

from __future__ import annotations

import ast
import warnings
from itertools import islice

from jackfield.handler_types import is_open_annotation
from jackfield.strict_json import pointer

from jackfield_builder.findings import CheckCode
from jackfield_builder.schema_agreement import disagreements, written_path
from jackfield_builder.tool_draft import ToolDraft
from jackfield_builder.tool_files import HANDLER, SCHEMA
from jackfield_builder.type_schemas import normalised

_MAX_REPORTED = 10
"""Maximum number of disagreements reported for one schema."""


def check(draft: ToolDraft) -> None:
    """Add the schemas that only the types have; report where the file disagrees with the types."""
    if draft.schema is None or draft.written is None:
        return
    types = draft.types
    if types is None:
        _check_unread(draft)
        return
    for problem in types.problems:
        draft.report(CheckCode.BAD_TYPES, problem, file=HANDLER)
    for annotation in types.unresolved:
        draft.report(CheckCode.UNRESOLVED_TYPES, f"{annotation!r} cannot be resolved", file=HANDLER)
    for name, typed in (("parameters", types.parameters), ("returns", types.returns)):
        if typed is None:
            continue
        if name not in draft.written:
            draft.schema[name] = typed
            draft.from_types.add(name)
        elif isinstance(written := draft.schema.get(name), dict):
            same_form = normalised(written, results=name == "returns")
            for path, message in islice(disagreements(same_form, typed), _MAX_REPORTED):
                place = pointer(name, *written_path(written, path))
                draft.report(CheckCode.TYPES_DISAGREE, message, file=SCHEMA, path=place)


_UNREADABLE = (
    CheckCode.BAD_SYNTAX,
    CheckCode.NO_EXECUTE,
    CheckCode.NO_FUNCTION,
    CheckCode.BAD_SIGNATURE,
    CheckCode.IMPORT_RAISES,
    CheckCode.IMPORT_DIES,
)
"""Findings about a handler whose types cannot be read until it is corrected."""


def _check_unread(draft: ToolDraft) -> None:
    """Report parameters that are missing because the handler, which has types, was not imported."""
    if draft.schema is None or "parameters" in (draft.written or {}):
        return
    if draft.handler is None or draft.has(*_UNREADABLE):
        # The types may declare arguments; a tool without arguments would contradict its guide.
        draft.schema.pop("parameters", None)
        return
    with warnings.catch_warnings(action="ignore"):
        tree = ast.parse(draft.handler)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == draft.source.function:
            first = next(iter([*node.args.posonlyargs, *node.args.args]), None)
            if first and first.annotation and not is_open_annotation(ast.unparse(first.annotation)):
                message = (
                    f"schema.json has no `parameters`, and {first.arg} is annotated as "
                    f"{ast.unparse(first.annotation)}"
                )
                place = f"line {node.lineno}"
                draft.report(CheckCode.TYPES_UNREAD, message, file=HANDLER, path=place)
                # Remove the parameters of a tool without arguments, which would contradict the guide.
                del draft.schema["parameters"]
                return
