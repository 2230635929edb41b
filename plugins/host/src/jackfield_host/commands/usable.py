"""What is right of settings that are wrong elsewhere: enough to ask plugins what is wrong with theirs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jackfield.settings import KEYS, TABLES, Settings, SettingsError


def usable_settings(document: Mapping[str, Any], flags: Mapping[str, Any]) -> Settings | None:
    """The kernel's settings without those that are wrong; nothing where the registry is one of them."""
    right: dict[str, Any] = {}
    for name in KEYS:
        variable = f"JACKFIELD_{name.upper()}"
        text = os.environ.get(variable, "")
        said = flags.get(name) or (None if text else document.get(name))
        try:
            right[name] = getattr(_alone({variable: text}, name, said), name)
        except SettingsError:
            if name == "registry":
                return None
    return Settings(**right, tables={kind: _tables(kind, document.get(kind)) for kind in TABLES})


def _tables(kind: str, said: object) -> Mapping[str, Any]:
    tables: dict[str, Any] = {}
    for name, table in said.items() if isinstance(said, Mapping) else ():
        with suppress(SettingsError):
            tables |= _alone({}, kind, {name: table}).tables[kind]
    return tables


def _alone(environ: Mapping[str, str], name: str, said: object) -> Settings:
    """One setting, judged by itself."""
    return Settings.load(Path(os.devnull), environ, **{name: said})
