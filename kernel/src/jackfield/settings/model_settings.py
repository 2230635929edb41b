"""The settings of the models that users may choose for a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from jackfield.settings.declaration import Help, NonEmpty

SettingValue = str | int | float | bool
"""A value that a model sets in place of a setting in its transport's table."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """One model: a table `[models.NAME]`."""

    transport: Annotated[NonEmpty, Help("The name of its transport, as in `provider`.")]
    settings: Annotated[
        Mapping[NonEmpty, SettingValue],
        Help("Settings that replace those in the transport's own table, such as `text_model`."),
    ] = field(default_factory=dict)
