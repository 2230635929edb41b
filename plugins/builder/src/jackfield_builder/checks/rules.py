"""What the fields say together: category, effects, confirmation, time."""

from __future__ import annotations

from jackfield.contract.manifest import DEFAULT_TIMEOUT_MS

from jackfield_builder.drafts import SCHEMA, Draft
from jackfield_builder.findings import Code

_VOICE_MS, _TEXT_MS = 800, 2000


def check(draft: Draft) -> None:
    """Fields that contradict each other, or what conversation asks for."""
    if draft.schema is None:
        return
    _check_effects(draft, draft.schema)
    _check_time(draft, draft.schema)


def _check_effects(draft: Draft, schema: dict[str, object]) -> None:
    category, effects = schema.get("category"), schema.get("sideEffects")
    confirmation = schema.get("requiresConfirmation")
    if category == "retrieval":
        if schema.get("idempotent") is False:
            draft.report(
                Code.RETRIEVAL_NOT_IDEMPOTENT,
                "category is retrieval, idempotent is false",
                file=SCHEMA,
                path="/idempotent",
            )
        if effects == "writes":
            draft.report(
                Code.RETRIEVAL_WRITES,
                "category is retrieval, sideEffects is writes",
                file=SCHEMA,
                path="/sideEffects",
            )
    if category == "action" and effects == "writes" and confirmation is False:
        draft.report(
            Code.UNCONFIRMED_WRITE,
            "the model can run it on its own",
            file=SCHEMA,
            path="/requiresConfirmation",
        )
    if confirmation in (True, "policy") and "preview" not in schema:
        draft.report(
            Code.NO_PREVIEW, "the confirmation card has no text of its own", file=SCHEMA, path="/preview"
        )


def _check_time(draft: Draft, schema: dict[str, object]) -> None:
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
            Code.BUDGET_OVER_TIMEOUT,
            f"a budget of {budget} ms, stopped after {limit} ms",
            file=SCHEMA,
            path="/latencyBudgetMs",
        )
    if schema.get("category") == "retrieval" and isinstance(modes, list):
        for mode, guidance in (("voice", _VOICE_MS), ("text", _TEXT_MS)):
            if mode in modes and budget > guidance:
                message = f"{budget} ms, where {mode} allows {guidance} ms"
                draft.report(Code.SLOW_RETRIEVAL, message, file=SCHEMA, path="/latencyBudgetMs")
                break
