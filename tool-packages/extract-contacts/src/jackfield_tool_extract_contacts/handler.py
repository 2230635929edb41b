"""The handler: a plain function, because it only computes.

The libraries are imported with the module, while the host starts, so that no call waits for them.
"""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok

from jackfield_tool_extract_contacts.extraction import extract
from jackfield_tool_extract_contacts.phones import is_region
from jackfield_tool_extract_contacts.result import result

_MEANT = {"UK": "GB", "EL": "GR", "EN": "GB or US"}


def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:  # noqa: ARG001 - the contract's signature
    """Find contacts in `text`; fails only for a region without phone numbers."""
    region = args.get("region")
    if region is not None and not is_region(region):
        meant = _MEANT.get(region, "a two-letter ISO 3166 code such as DE, GB or US, or leave region out")
        return fail(
            ErrorType.PERMANENT,
            f"No phone numbers are known for the region {region}.",
            suggestion=f"Use {meant}.",
        )
    return ok(result(extract(args["text"], region, args["leniency"]), args["kinds"]))
