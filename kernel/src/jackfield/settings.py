"""What a deployment decides: what takes part, where the registry lies, how plugins are set up.

Flags win over the environment, the environment over `jackfield.toml`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONFIG_FILE = "jackfield.toml"

LISTS = ("allow", "deny")
COUNTS = ("prompt_tokens", "answer_tokens")
KEYS = (*LISTS, "registry", "deployment", "store", "provider", "prompts", "returns", *COUNTS)
"""What is a key of `jackfield.toml` and a variable JACKFIELD_<KEY>."""

PATHS = {"registry": "the file the registry is frozen into", "prompts": "a folder with prompts"}

TABLES = ("policies", "intents", "capabilities", "stores", "observers", "transports", "endpoints")
"""What holds a table for each offer of its kind, such as `[policies.budgets]`."""

SECTIONS = ("host",)
"""What holds one table for a whole program, which judges it itself."""

_KNOWN = (*KEYS, *TABLES, *SECTIONS)

DEPLOYMENTS = ("development", "production")

RETURNS = ("report", "enforce")

AUTO = "auto"
"""The `provider` that is whichever the transports detect."""

_CHOICES = {"deployment": DEPLOYMENTS, "returns": RETURNS}


class SettingsError(Exception):
    """A setting that cannot be used, and how to mend it."""


class Mistakes:
    """Settings that cannot be used, until all are known: `with mistakes:` notes one, and goes on behind."""

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if isinstance(error, SettingsError):
            self.note(str(error))
            return True
        # What fails behind a mistake may fail because of it.
        return bool(self._sentences) and isinstance(error, Exception)

    def note(self, sentence: str) -> None:
        """Keep what is wrong, once."""
        self._sentences[sentence] = None

    def tell(self) -> None:
        """Stop with every mistake that was noted, if there was any."""
        if self._sentences:
            raise SettingsError("\n".join(self._sentences))


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
    """`development` stops when code is not what was frozen, and creates a missing store.

    `production` goes on without the code, and never creates a store by itself.
    """

    store: str = ""
    """The store by its name; empty takes `sqlite` where it is installed, else `memory`."""

    provider: str = AUTO
    """The provider of models by its name; `auto`, or empty, takes the best that is found at the start."""

    prompts: Path | None = None
    """A folder with prompts of one's own; what is missing in it is taken from those that ship."""

    returns: str = "report"
    """`report` passes on data that breaks the tool's `returns` and reports it; `enforce` fails the call."""

    prompt_tokens: int = 0
    """Most tokens of a session's instructions and tool declarations; 0 takes the provider's, else 8,000."""

    answer_tokens: int = 0
    """Most tokens of one answer of the model; 0 leaves it to the provider."""

    tables: Mapping[str, Any] = field(default_factory=dict)
    """What is said about each offer, by kind and name."""

    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is said to a whole program, such as `[host]`."""

    @classmethod
    def load(
        cls, config: Path | None = None, environ: Mapping[str, str] = os.environ, **flags: Any
    ) -> Settings:
        """Settings of this process; `flags` that are None or empty were not given."""
        mistakes = Mistakes()
        chosen = _from_file(config or _named_config(environ), mistakes)
        for name in KEYS:
            text = environ.get(f"JACKFIELD_{name.upper()}")
            if text:
                chosen[name] = [part.strip() for part in text.split(",")] if name in LISTS else text
        chosen |= {name: value for name, value in flags.items() if value}
        given = _judged(KEYS, chosen, _checked, mistakes)
        tables = _judged(TABLES, chosen, _table, mistakes)
        sections = _judged(SECTIONS, chosen, _section, mistakes)
        mistakes.tell()
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


def _from_file(named: Path | None, mistakes: Mistakes) -> dict[str, Any]:
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
            mistakes.note(f"{path}: unknown setting {key!r}; {_meant(key)}")
    return document


def _meant(key: str) -> str:
    from difflib import get_close_matches

    # So close, because what belongs to the host, such as `voice`, must not be taken for something else.
    if close := get_close_matches(key, _KNOWN, 1, cutoff=0.75):
        return f"did you mean {close[0]!r}?"
    return f"known are {', '.join(_KNOWN)}; a setting of the host belongs into [host]"


def _judged(
    names: Iterable[str], chosen: Mapping[str, Any], judge: Callable[[str, Any], Any], mistakes: Mistakes
) -> dict[str, Any]:
    judged: dict[str, Any] = {}
    for name in names:
        if name in chosen:
            with mistakes:
                judged[name] = judge(name, chosen[name])
    return judged


def _checked(name: str, value: Any) -> Any:
    if name in LISTS:
        if isinstance(value, str) or not all(isinstance(pattern, str) for pattern in value):
            raise SettingsError(f'`{name}` is a list of names, e.g. {name} = ["jackfield-tool-*"]')
        return tuple(pattern for pattern in value if pattern)
    if name in COUNTS:
        return _count(name, value)
    if not isinstance(value, str):
        raise SettingsError(f'`{name}` is a text, e.g. {name} = "..."')
    if name in _CHOICES and value not in _CHOICES[name]:
        raise SettingsError(f"`{name}` is {value!r}; it is one of {', '.join(_CHOICES[name])}")
    if name in PATHS:
        if not value:
            raise SettingsError(f"`{name}` is empty; it names {PATHS[name]}")
        return Path(value).expanduser()
    return value


def _count(name: str, value: Any) -> int:
    """A number of tokens; a variable of the environment holds it as text."""
    if isinstance(value, str) and value.isascii() and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SettingsError(f"`{name}` is {value!r}; it is a number of tokens, and 0 takes the default")
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
