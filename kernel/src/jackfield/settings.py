"""What a deployment decides: which distributions take part, and where the registry lies.

Flags win over the environment, the environment over `jackfield.toml`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

CONFIG_FILE = "jackfield.toml"


class SettingsError(Exception):
    """A setting that cannot be used, and how to mend it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the build; each is a key of `jackfield.toml` and a variable JACKFIELD_<KEY>."""

    allow: tuple[str, ...] = ()
    """Use only distributions or entry points that match one of these patterns; empty allows all."""

    deny: tuple[str, ...] = ()
    """Never use distributions or entry points that match one of these patterns; wins over allow."""

    registry: Path = Path("tool_registry.json")
    """The file the registry is frozen into."""

    @classmethod
    def load(
        cls, config: Path | None = None, environ: Mapping[str, str] = os.environ, **flags: Any
    ) -> Settings:
        """Settings of this process; `flags` that are None or empty were not given."""
        chosen = _from_file(config or _named_config(environ))
        for field in fields(cls):
            text = environ.get(f"JACKFIELD_{field.name.upper()}")
            if text:
                chosen[field.name] = (
                    text if field.name == "registry" else [part.strip() for part in text.split(",")]
                )
        chosen |= {name: value for name, value in flags.items() if value}
        return cls(
            allow=_patterns("allow", chosen.get("allow", ())),
            deny=_patterns("deny", chosen.get("deny", ())),
            registry=Path(chosen.get("registry", cls.__dataclass_fields__["registry"].default)),
        )


def _named_config(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("JACKFIELD_CONFIG")
    return Path(named) if named else None


def _from_file(named: Path | None) -> dict[str, Any]:
    path = named or Path(CONFIG_FILE)
    if not path.exists():
        if named:
            raise SettingsError(f"{named}: no such file")
        return {}
    import tomllib

    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from None
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    known = [field.name for field in fields(Settings)]
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise SettingsError(f"{path}: unknown setting {key!r}; {meant}")
    if not isinstance(table.get("registry", ""), str):
        raise SettingsError(f'{path}: `registry` is a path, e.g. registry = "tool_registry.json"')
    return table


def _patterns(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(pattern, str) for pattern in value):
        raise SettingsError(f'`{name}` is a list of names, e.g. {name} = ["jackfield-tool-*"]')
    return tuple(pattern for pattern in value if pattern)
