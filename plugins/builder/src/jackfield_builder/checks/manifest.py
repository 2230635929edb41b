"""Checks the fields of schema.json: each by the published schema that editors use, then in combination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from string import Formatter
from typing import TYPE_CHECKING, Any

from jackfield.contract.claim_phrases import parse_phrase
from jackfield.contract.manifest import DEFAULT_TIMEOUT_MS, tool_schema
from jackfield.registry.arguments import compile_schema

from jackfield_builder.field_errors import field_errors
from jackfield_builder.findings import CheckCode
from jackfield_builder.tool_draft import ToolDraft
from jackfield_builder.tool_files import SCHEMA, FileProblem

if TYPE_CHECKING:
    import jsonschema_rs

_VOICE_MS, _TEXT_MS = 800, 2000
_PREVIEW_FORMATS = ("moment", "in", "until")


def check(draft: ToolDraft) -> None:
    """Check each field's presence, type and value, and that the id is the tool's declared name."""
    if draft.schema is None:
        return
    document = _with_plain_id(draft.schema) if draft.source.origin else draft.schema
    if not _validator().is_valid(document):
        for error in field_errors(document, _fields_only()):
            draft.report(error.code, error.message, file=SCHEMA, path=error.path, hint=_hint(draft, error))
    tool_id = draft.schema.get("toolId")
    if isinstance(tool_id, str) and tool_id != draft.source.tool_id:
        declared = "the family calls it" if draft.source.family else "it is declared as"
        message = f"toolId is {tool_id!r}, but {declared} {draft.source.tool_id!r}"
        draft.report(CheckCode.ID_MISMATCH, message, file=SCHEMA, path="/toolId")
    preview = draft.schema.get("preview")
    if isinstance(preview, str) and draft.parameters is not None:
        for problem in preview_problems(preview, draft.parameters):
            draft.report(CheckCode.BAD_PREVIEW, problem, file=SCHEMA, path="/preview")
    _check_says(draft, draft.schema.get("says"))


def _check_says(draft: ToolDraft, says: object) -> None:
    for place, phrase in enumerate(says if isinstance(says, list) else ()):
        if isinstance(phrase, str) and phrase.strip():
            try:
                parse_phrase(phrase)
            except ValueError as error:
                draft.report(CheckCode.BAD_SAYS, str(error), file=SCHEMA, path=f"/says/{place}")


def _with_plain_id(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of a listed tool, whose id has two underscores after the name of its source."""
    return {**schema, "toolId": str(schema.get("toolId")).replace("__", "_", 1)}


def _hint(draft: ToolDraft, problem: FileProblem) -> str:
    if problem.code is CheckCode.NOT_SEMVER and "version" not in (draft.written or {}):
        return "the version of the distribution has no semantic equivalent; state `version`, e.g. 1.0.0"
    return problem.hint


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return compile_schema(tool_schema())


def _fields_only() -> dict[str, Any]:
    """Return the published schema without the schemas of `parameters` and `returns`."""
    published = tool_schema()
    # These two are schemas; the parameters check covers them with its own codes.
    shallow = {name: {"type": "object"} for name in ("parameters", "returns")}
    return {**published, "properties": {**published["properties"], **shallow}}


def check_consistency(draft: ToolDraft) -> None:
    """Check that the fields do not contradict each other and suit a conversation."""
    if draft.schema is None:
        return
    _check_effects(draft, draft.schema)
    _check_time(draft, draft.schema)


def _check_effects(draft: ToolDraft, schema: dict[str, object]) -> None:
    category, effects = schema.get("category"), schema.get("sideEffects")
    confirmation = schema.get("requiresConfirmation")
    if category == "retrieval":
        if schema.get("idempotent") is False:
            draft.report(
                CheckCode.RETRIEVAL_NOT_IDEMPOTENT,
                "category is retrieval, but idempotent is false",
                file=SCHEMA,
                path="/idempotent",
            )
        if effects == "writes":
            draft.report(
                CheckCode.RETRIEVAL_WRITES,
                "category is retrieval, but sideEffects is writes",
                file=SCHEMA,
                path="/sideEffects",
            )
    if category == "action" and effects == "writes" and confirmation is False:
        draft.report(
            CheckCode.UNCONFIRMED_WRITE,
            "the model can run it without asking the user",
            file=SCHEMA,
            path="/requiresConfirmation",
        )
    if confirmation in (True, "policy") and "preview" not in schema:
        draft.report(
            CheckCode.NO_PREVIEW, "the confirmation card shows raw arguments", file=SCHEMA, path="/preview"
        )


def _check_time(draft: ToolDraft, schema: dict[str, object]) -> None:
    budget, timeout, modes = (
        schema.get("latencyBudgetMs"),
        schema.get("timeoutMs"),
        schema.get("allowedModes"),
    )
    if not isinstance(budget, int):
        return
    limit = timeout if isinstance(timeout, int) else DEFAULT_TIMEOUT_MS
    if budget > limit:
        draft.report(
            CheckCode.BUDGET_OVER_TIMEOUT,
            f"the budget is {budget} ms, but the call is stopped after {limit} ms",
            file=SCHEMA,
            path="/latencyBudgetMs",
        )
    if schema.get("category") == "retrieval" and isinstance(modes, list):
        for mode, guidance in (("voice", _VOICE_MS), ("text", _TEXT_MS)):
            if mode in modes and budget > guidance:
                message = f"the budget is {budget} ms; {mode} allows {guidance} ms"
                draft.report(CheckCode.SLOW_RETRIEVAL, message, file=SCHEMA, path="/latencyBudgetMs")
                break


def preview_problems(template: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reasons why a preview template cannot be filled with these parameters."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        yield str(error)
        return
    properties = parameters.get("properties")
    known = set(properties) if isinstance(properties, dict) else set()
    for _, name, form, conversion in parts:
        if name is None:
            continue
        kind, _, other = (form or "").partition(" ")
        if conversion or (form and kind not in _PREVIEW_FORMATS) or (kind == "moment" and other):
            yield (
                f"{{{name}}} has an unknown format; the formats are {{{name}:moment}}, {{{name}:in ZONE}} "
                f"and {{{name}:until END}}"
            )
            continue
        for argument in (name, other) if kind in ("in", "until") else (name,):
            if argument.split(".")[0] not in known:
                yield f"{{{argument}}} is not a parameter"
