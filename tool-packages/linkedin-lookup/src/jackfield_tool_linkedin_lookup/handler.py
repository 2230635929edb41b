"""Looks up a person's LinkedIn profile, in the knowledge base only."""

from __future__ import annotations

import asyncio
from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield_capability_types.knowledge import NAMESPACES, Evidence, Filters, Record

from jackfield_tool_linkedin_lookup.people import company_of, is_named, role_of, works_at
from jackfield_tool_linkedin_lookup.profiles import profile_of
from jackfield_tool_linkedin_lookup.voice_format import shorten_for_voice

_CANDIDATES = 20
"""The number of people considered in each namespace."""


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Return everyone with that name, with distinguishing details."""
    name, company = args["name"].strip(), args.get("company", "").strip()
    if not any(each.isalnum() for each in name):
        return fail(ErrorType.PERMANENT, "The name is blank.", suggestion="Ask the user for the name.")
    named = [record for record in await _candidates(ctx, name, company) if is_named(record, name)]
    colleagues = [record for record in named if company and works_at(record, company)]
    chosen = colleagues or named
    data: dict[str, list[dict[str, Any]]] = {"people": [], "without_profile": []}
    for record in chosen:
        profile = profile_of(record)
        matched = ["name", "company"] if colleagues else ["name"]
        if profile:
            data["people"].append(_person(record, profile, matched))
        else:
            known = {"id": record.id, "name": record.title, "company": company_of(record)}
            data["without_profile"].append(known)
    data = {kind: people[: args["top_k"]] for kind, people in data.items()}
    ctx.audit("linkedin_looked_up", found=len(data["people"]))
    return ok(shorten_for_voice(data) if ctx.session.mode == "voice" else data)


async def _candidates(ctx: ToolContext, name: str, company: str) -> list[Record]:
    """Return people from every namespace visible to this user, best match first."""
    only_people = Filters(type="person")
    # Also search for the name alone: a company missing from the record must not hide the person.
    queries = [name, f"{name} {company}"[:200]] if company else [name]
    answers = await asyncio.gather(
        *(
            ctx.kb.search(query, namespace=namespace, filters=only_people, limit=_CANDIDATES, snippets=False)
            for namespace in NAMESPACES
            for query in queries
        )
    )
    best: dict[str, Evidence] = {}
    for found in (each for answer in answers for each in answer):
        if found.record.id not in best or found.score > best[found.record.id].score:
            best[found.record.id] = found
    ranked = sorted(best.values(), key=lambda each: (-each.score, each.record.id))
    return [found.record for found in ranked]


def _person(record: Record, profile: str, matched: list[str]) -> dict[str, Any]:
    updated = record.last_updated
    return {
        "id": record.id,
        "name": record.title,
        "linkedin": profile,
        "role": role_of(record),
        "company": company_of(record),
        "matched": matched,
        "source_type": record.source_type,
        "last_updated": updated.isoformat().replace("+00:00", "Z") if updated else None,
    }
