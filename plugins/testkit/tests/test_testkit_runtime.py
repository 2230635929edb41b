"""`capability` creates the capability of an installed plugin; `StubWorkspace` returns given results."""

from __future__ import annotations

import asyncio

import pytest
from jackfield_capability_types.workspace import FileChange
from jackfield_testkit import StubWorkspace, capability
from jackfield_testkit.site_packages import SitePackages, site

__all__ = ["site"]

PLUGIN = """
from jackfield import hookimpl
from jackfield.offers import CapabilityOffer


@hookimpl
def jackfield_capabilities():
    return [CapabilityOffer("fab_lamp", lambda settings, services: (dict(settings), services.store))]
"""


def test_capability_is_created_by_the_plugin_that_offers_it(site: SitePackages) -> None:
    site.plugin("fab-lamp", PLUGIN)
    settings, store = capability("fab_lamp", {"colour": "red"})
    assert settings == {"colour": "red"}
    assert asyncio.run(store.get("anything")) is None


def test_unknown_capability_raises() -> None:
    with pytest.raises(LookupError, match="no installed plugin offers the capability 'fab_lamp'"):
        capability("fab_lamp")


def test_stub_workspace_returns_given_results_and_records_calls() -> None:
    change = FileChange("a.txt", "created", 1)
    workspace = StubWorkspace(write=change)
    assert asyncio.run(workspace.write("a.txt", "x", overwrite=True)) is change
    with pytest.raises(LookupError, match=r"StubWorkspace\(edit=\.\.\.\)"):
        asyncio.run(workspace.edit("a.txt", "x", "y"))
    assert workspace.calls == [("write", "a.txt", "x", True), ("edit", "a.txt", "x", "y", False)]
