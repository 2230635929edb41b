"""The choice of a toolset for a new session."""

from __future__ import annotations

import pytest
from jackfield.contract.snapshot import Snapshot
from jackfield.settings.toolset_settings import ToolsetSettings
from jackfield.toolsets import Toolset, Toolsets

SETTINGS = {
    "all": ToolsetSettings(tools=("d",), everyone=True),
    "company": ToolsetSettings(tools=("c",), organisations=("acme",)),
    "staff": ToolsetSettings(tools=("b",), roles=("staff",)),
    "ada": ToolsetSettings(tools=("a",), users=("ada",)),
    "second": ToolsetSettings(tools=("e",), roles=("staff", "guest")),
}

TOOLSETS = Toolsets(SETTINGS, Snapshot("1", "", {}, {}))


@pytest.mark.parametrize(
    ("user", "roles", "organisation", "chosen"),
    [
        ("ada", ("staff",), "acme", "ada"),
        ("eve", ("guest", "staff"), "acme", "staff"),
        ("eve", ("guest",), "acme", "second"),
        ("eve", (), "acme", "company"),
        ("eve", (), "other", "all"),
        (None, (), None, "all"),
    ],
)
def test_the_most_specific_toolset_wins_and_then_the_first(
    user: str | None, roles: tuple[str, ...], organisation: str | None, chosen: str
) -> None:
    toolset = TOOLSETS.choose(user, roles, organisation)
    assert toolset is not None
    assert (toolset.name, toolset.tools) == (chosen, frozenset(SETTINGS[chosen].tools))


def test_a_toolset_asked_for_by_name_wins_and_an_unknown_name_gives_no_tools() -> None:
    named, unknown = (TOOLSETS.choose("ada", toolset=name) for name in ("company", "gone"))
    assert named is not None
    assert named.name == "company"
    assert unknown is not None
    assert not unknown.includes("a")


def test_a_toolset_survives_being_saved() -> None:
    toolset = Toolset("pro", ["a", "b"], {"a": "fast"})
    loaded = Toolset.from_wire(toolset.to_wire())
    assert (loaded.key, loaded.implementation("a"), loaded.implementation("b")) == (
        toolset.key, "a:fast", "b",
    )  # fmt: skip
