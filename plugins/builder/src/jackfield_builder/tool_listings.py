"""Reads the tools that other systems provide, through the listings that plugins offer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from jackfield.contract.snapshot import Snapshot, SnapshotError
from jackfield.distributions import Distribution
from jackfield.offers import (
    ListedTool,
    ListingProblem,
    ListingProblemKind,
    ListingRequest,
    ToolListing,
    ToolListingOffer,
)
from jackfield.plugins import Plugins, RegisteredOffer
from jackfield.settings import Settings, SettingsError, SettingsFaults, read_offer

from jackfield_builder.findings import CheckCode, Finding, Severity
from jackfield_builder.tool_files import GUIDE, SCHEMA

_CODES = {
    ListingProblemKind.UNREACHABLE: CheckCode.SOURCE_UNREACHABLE,
    ListingProblemKind.UNAVAILABLE: CheckCode.SOURCE_LEFT_OUT,
    ListingProblemKind.UNUSABLE: CheckCode.UNUSABLE_DEFINITION,
    ListingProblemKind.CONVERTED: CheckCode.CONVERTED_DEFINITION,
    ListingProblemKind.SUSPICIOUS: CheckCode.SUSPICIOUS_TEXT,
    ListingProblemKind.UNMATCHED: CheckCode.OVERRIDE_UNMATCHED,
}


def listed_tools(
    plugins: Plugins, settings: Settings, request: ListingRequest
) -> tuple[list[RegisteredOffer], list[Finding]]:
    """Return the tools of all listings whose capability is enabled, as if their plugins offered them."""
    tools: list[RegisteredOffer] = []
    findings: list[Finding] = []
    for each in plugins.of("jackfield_tool_listings"):
        offer = each.offer
        if not isinstance(offer, ToolListingOffer):
            continue
        listing = _read(offer, each.plugin.distribution, plugins, settings, request)
        if isinstance(listing, Finding):
            findings.append(listing)
            continue
        tools += [RegisteredOffer("jackfield_tools", tool, each.plugin) for tool in listing.tools]
        findings += _findings(listing.problems, each)
    return tools, findings


def _read(
    offer: ToolListingOffer,
    owner: Distribution,
    plugins: Plugins,
    settings: Settings,
    request: ListingRequest,
) -> ToolListing | Finding:
    capability = next(
        (each.offer for each in plugins.of("jackfield_capabilities") if each.name == offer.capability), None
    )
    if capability is None or not settings.enabled("capabilities", offer.capability):
        return ToolListing()
    faults = SettingsFaults()
    declared = read_offer(
        "capabilities", capability, settings.table("capabilities", offer.capability), faults
    )
    if faults:
        message = "; ".join(str(faults).splitlines())
        return Finding(CheckCode.LISTING_SETTINGS, message, owner, offer.name)
    try:
        return offer.read(declared, request)
    except SettingsError as error:
        return Finding(CheckCode.LISTING_SETTINGS, str(error), owner, offer.name)
    except Exception as error:  # noqa: BLE001 - a plugin is third-party code
        message = f"the listing {offer.name!r} raised {type(error).__name__}: {error}"
        return Finding(CheckCode.BROKEN_PLUGIN, message, owner, offer.name)


def _findings(problems: Iterable[ListingProblem], registered: RegisteredOffer) -> Iterator[Finding]:
    owner = registered.plugin.distribution
    for each in problems:
        yield Finding(_CODES[each.kind], each.message, owner, each.subject, hint=each.hint)


def frozen_origins(settings: Settings) -> tuple[Mapping[str, Any], ...]:
    """Return the origins of the listed tools in the current registry, if there is one."""
    try:
        tools = Snapshot.load(settings.registry).tools.values()
    except SnapshotError:
        return ()
    return tuple(tool.origin for tool in tools if tool.origin)


def without_author(finding: Finding, tools: Iterable[ListedTool]) -> Finding:
    """Return a warning about the texts of a listed tool as a note: only the other system can change them."""
    listed = {tool.tool_id for tool in tools}
    if finding.subject in listed and finding.file in {SCHEMA, GUIDE}:
        return replace(finding, as_note=finding.severity is not Severity.ERROR)
    return finding
