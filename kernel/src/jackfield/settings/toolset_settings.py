"""The settings of toolsets: their tools and variants, and the users who get them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from jackfield.settings.declaration import Format, Help, MaxLen, NonEmpty


def _name(text: str) -> str:
    if 0 < len(text) <= 64 and all(each.isascii() and (each.isalnum() or each in "_-") for each in text):
        return text
    raise ValueError


SettingName = Annotated[str, Format("up to 64 letters, digits, hyphens and underscores", _name)]
"""A table name that the deployment chooses, such as that of a toolset."""


@dataclass(frozen=True, slots=True)
class ToolsetSettings:
    """One toolset: a table `[toolsets.NAME]`."""

    tools: Annotated[
        tuple[NonEmpty, ...], MaxLen(1000), Help("The ids of the toolset's tools; empty means all tools.")
    ] = ()
    without: Annotated[tuple[NonEmpty, ...], MaxLen(1000), Help("The ids of tools to leave out.")] = ()
    variants: Annotated[
        Mapping[NonEmpty, NonEmpty],
        Help("The variant of a tool to use, by the tool's id; other tools are used without a variant."),
    ] = field(default_factory=dict)
    users: Annotated[tuple[NonEmpty, ...], MaxLen(1000), Help("The users who get the toolset.")] = ()
    roles: Annotated[tuple[NonEmpty, ...], MaxLen(1000), Help("The roles whose users get the toolset.")] = ()
    organisations: Annotated[
        tuple[NonEmpty, ...], MaxLen(1000), Help("The organisations whose users get the toolset.")
    ] = ()
    everyone: Annotated[bool, Help("True if users who have no other toolset get this one.")] = False
