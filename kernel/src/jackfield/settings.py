"""What a deployment decides: what takes part, where the registry lies, how plugins are set up.

Flags win over the environment, the environment over `jackfield.toml`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONFIG_FILE = "jackfield.toml"

LISTS = ("allow", "deny")
KEYS = (*LISTS, "registry", "deployment", "store", "provider", "prompts")
"""What is a key of `jackfield.toml` and a variable JACKFIELD_<KEY>."""

PATHS = {"registry": "the file the registry is frozen into", "prompts": "a folder with prompts"}

TABLES = ("policies", "intents", "capabilities", "stores", "observers", "transports")
"""What holds a table for each offer of its kind, such as `[policies.budgets]`."""

SECTIONS = ("host",)
"""What holds one table for a whole program, which judges it itself."""

IN_HOST = (
    "access_log", "address", "hosts", "jwt", "keys", "language", "log_format", "log_level", "max_sessions",
    "origins", "port", "proxies", "voice",
)  # fmt: skip
"""What people write at the top of the file and belongs into `[host]`; the host itself knows all it takes."""

_KNOWN = (*KEYS, *TABLES, *SECTIONS)

DEPLOYMENTS = ("development", "production")


class SettingsError(Exception):
    """A setting that cannot be used, and how to mend it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of this process."""

    allow: tuple[str, ...] = ()
    """Use only distributions or entry points that match one of these patterns; empty allows all."""

    deny: tuple[str, ...] = ()
    """Never use distributions or entry points that match one of these patterns; wins over allow."""

    registry: Path = Path("tool_registry.json")
    """The file the registry is frozen into."""

    deployment: str = "development"
    """`development` stops when code is not what was frozen; `production` goes on without it."""

    store: str = ""
    """The store by its name; empty takes `sqlite` where it is installed, else `memory`."""

    provider: str = ""
    """The provider of models by its name; empty takes `local` where it is installed."""

    prompts: Path | None = None
    """A folder with prompts of one's own; what is missing in it is taken from those that ship."""

    tables: Mapping[str, Any] = field(default_factory=dict)
    """What is said about each offer, by kind and name."""

    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is said to a whole program, such as `[host]`."""

    @classmethod
    def load(
        cls, config: Path | None = None, environ: Mapping[str, str] = os.environ, **flags: Any
    ) -> Settings:
        """Settings of this process; `flags` that are None or empty were not given."""
        chosen = _from_file(config or _named_config(environ))
        for name in KEYS:
            text = environ.get(f"JACKFIELD_{name.upper()}")
            if text:
                chosen[name] = [part.strip() for part in text.split(",")] if name in LISTS else text
        chosen |= {name: value for name, value in flags.items() if value}
        given = {name: _checked(name, chosen[name]) for name in KEYS if name in chosen}
        tables = {kind: _table(kind, chosen[kind]) for kind in TABLES if kind in chosen}
        sections = {name: _section(name, chosen[name]) for name in SECTIONS if name in chosen}
        return cls(**given, tables=tables, sections=sections)

    def table(self, kind: str, name: str) -> dict[str, Any]:
        """What is said about one offer."""
        return {key: value for key, value in self._said(kind, name).items() if key != "enabled"}

    def enabled(self, kind: str, name: str) -> bool:
        """Whether an offer is used; `enabled = false` in its table switches it off."""
        return self._said(kind, name).get("enabled", True) is not False

    def _said(self, kind: str, name: str) -> Mapping[str, Any]:
        said: Mapping[str, Any] = self.tables.get(kind, {}).get(name, {})
        return said


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
        document = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from None
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    for key in document:
        if key not in _KNOWN:
            raise SettingsError(f"{path}: unknown setting {key!r}; {_meant(key)}")
    return document


def _meant(key: str) -> str:
    if key in IN_HOST:
        return f"`{key}` belongs into [host]"
    from difflib import get_close_matches

    close = get_close_matches(key, _KNOWN, 1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(_KNOWN)}"


def _checked(name: str, value: Any) -> Any:
    if name in LISTS:
        if isinstance(value, str) or not all(isinstance(pattern, str) for pattern in value):
            raise SettingsError(f'`{name}` is a list of names, e.g. {name} = ["jackfield-tool-*"]')
        return tuple(pattern for pattern in value if pattern)
    if not isinstance(value, str):
        raise SettingsError(f'`{name}` is a text, e.g. {name} = "..."')
    if name == "deployment" and value not in DEPLOYMENTS:
        raise SettingsError(f"`deployment` is {value!r}; it is one of {', '.join(DEPLOYMENTS)}")
    if name in PATHS:
        if not value:
            raise SettingsError(f"`{name}` is empty; it names {PATHS[name]}")
        return Path(value).expanduser()
    return value


def _section(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"`{name}` is a table, [{name}]")
    return value


def _table(kind: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(said, Mapping) for said in value.values()):
        raise SettingsError(f"`{kind}` holds tables, e.g. [{kind}.NAME]")
    for name, said in value.items():
        if not isinstance(said.get("enabled", True), bool):
            raise SettingsError(f"[{kind}.{name}] enabled is true or false, not {said['enabled']!r}")
    return value
