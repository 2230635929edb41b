"""A tool's declaration in every installed provider's form."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from jackfield.offers import CannotExpressError, SchemaAdapterOffer
from jackfield.plugins import RegisteredOffer

from jackfield_builder.drafts import SCHEMA, Draft
from jackfield_builder.findings import Code


def adapt(draft: Draft, adapters: Iterable[RegisteredOffer]) -> dict[str, Any]:
    """The declarations by adapter; what an adapter cannot express, or lowers, is reported."""
    declarations: dict[str, Any] = {}
    if draft.schema is None:
        return declarations
    for offered in adapters:
        adapter = offered.offer
        if not isinstance(adapter, SchemaAdapterOffer):
            continue
        try:
            # A copy, because an adapter that edits in place would change what the next one sees.
            parameters = copy.deepcopy(draft.schema["parameters"])
            adapted = adapter.adapt(draft.source.tool_id, draft.schema["description"], parameters)
        except CannotExpressError as error:
            message = f"{adapter.name}: {error.why}"
            draft.report(
                Code.CANNOT_EXPRESS, message, file=SCHEMA, path=f"/parameters{error.path}".rstrip("/")
            )
        except Exception as error:  # noqa: BLE001 - an adapter is somebody else's code
            owner = offered.plugin.distribution
            message = f"{adapter.name} of {owner} raised {type(error).__name__}: {error}"
            draft.report(Code.ADAPTER_BROKEN, message, file=SCHEMA, path="/parameters")
        else:
            declarations[adapter.name] = adapted.declaration
            for lowering in adapted.lowered:
                message = f"{adapter.name}: {lowering.what}"
                draft.report(
                    Code.LOWERED, message, file=SCHEMA, path=f"/parameters{lowering.path}".rstrip("/")
                )
    return declarations
