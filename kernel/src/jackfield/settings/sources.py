"""The sources of settings: flags override environment variables, which override `jackfield.toml`."""

from __future__ import annotations

import os
import typing
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from jackfield.settings.declaration import (
    MAPPINGS,
    Ge,
    Help,
    MaxLen,
    NonEmpty,
    PathText,
    Unit,
    declared_fields,
    unwrap,
)
from jackfield.settings.model_settings import ModelSettings
from jackfield.settings.reader import SettingsError, SettingsFaults, read_settings, show_value, suggest
from jackfield.settings.relative_paths import FileTable, folder_of
from jackfield.settings.toolset_settings import SettingName, ToolsetSettings

CONFIG_FILE = "jackfield.toml"
PREFIX = "JACKFIELD_"

TABLES = ("policies", "intents", "capabilities", "stores", "observers", "transports", "endpoints")
"""The kinds of offers; each kind has a table for every offer, such as `[policies.budgets]`."""

SECTIONS = ("host",)
"""The tables of programs; each program reads its own."""

AUTO = "auto"
"""The `provider` setting that picks the best transport found at startup."""

NO_PROVIDER = "none"
"""The `provider` setting of a host without conversations."""


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """The top-level keys of `jackfield.toml`."""

    allow: Annotated[
        tuple[NonEmpty, ...],
        Help("Use only distributions or entry points that match one of these patterns; empty allows all."),
    ] = ()
    deny: Annotated[
        tuple[NonEmpty, ...],
        Help("Never use distributions or entry points that match one of these patterns; overrides `allow`."),
    ] = ()
    registry: Annotated[Path, Help("The file that holds the frozen registry.")] = Path("tool_registry.json")
    deployment: Annotated[
        Literal["development", "production"],
        Help(
            "With `development`, a host does not start if code has changed since the build, and it creates "
            "a missing store. With `production`, it withholds changed code, does not start if that code "
            "governs or records calls, and never creates a store."
        ),
    ] = "development"
    store: Annotated[
        str,
        Help(
            "The name of the store.",
            default="`sqlite` if `jackfield-store-sqlite` is installed, else `memory`",
        ),
    ] = ""
    provider: Annotated[
        str,
        Help(
            "The name of the transport; `auto` or empty picks the best one found at startup. With `none`, "
            "or if `auto` finds none, conversations are off."
        ),
    ] = AUTO
    models: Annotated[
        Mapping[SettingName, ModelSettings],
        Help("Models, by name, that users may choose for a conversation instead of the provider's model."),
    ] = field(default_factory=dict)
    prompts: Annotated[
        Path | None,
        Help(
            "A directory with your own `core.md`, `voice.md` or `text.md`; missing files fall back to the "
            "built-in ones."
        ),
    ] = None
    returns: Annotated[
        Literal["report", "enforce"],
        Help(
            "`report` passes on data that violates the tool's `returns` and records the violation; "
            "`enforce` fails the call."
        ),
    ] = "report"
    prompt_tokens: Annotated[
        int,
        Ge(0),
        Unit("tokens"),
        Help(
            "Maximum tokens for a session's instructions and tool declarations; 0 uses the provider's limit: "
            "8,000, and 3,000 for an OpenAI-compatible server on loopback."
        ),
    ] = 0
    toolsets: Annotated[
        Mapping[SettingName, ToolsetSettings],
        Help(
            "Toolsets, by name: the tools, and the variant of each, that users, roles and organisations get."
        ),
    ] = field(default_factory=dict)
    experiments: Annotated[
        Path | None,
        Help(
            "The file with the experiments, in JSON. Hosts read it again when it changes. In production with "
            "`trusted_keys`, it has to be signed like the registry."
        ),
    ] = None
    answer_tokens: Annotated[
        int,
        Ge(0),
        Unit("tokens"),
        Help("Maximum tokens per model answer; 0 leaves it to the provider."),
    ] = 0
    trusted_keys: Annotated[
        tuple[Annotated[NonEmpty, PathText(unless="-----BEGIN ")], ...],
        MaxLen(64),
        Help(
            "Public keys whose signatures count, each as PEM text or as a path. If there are any, a "
            "production host neither starts nor resumes sessions unless enough valid signatures cover the "
            "registry."
        ),
    ] = ()
    signature_threshold: Annotated[
        int, Ge(1), Help("How many different trusted keys must have signed the registry.")
    ] = 1
    sign_command: Annotated[
        tuple[NonEmpty, ...],
        Help(
            "A command with its arguments that `jackfield sign` runs instead of reading a private key: it "
            "gets the bytes to sign on standard input and prints the signature, raw or in base64."
        ),
    ] = ()

    def __post_init__(self) -> None:
        """Check that the threshold can be met."""
        most = len(self.trusted_keys)
        if self.signature_threshold > max(most, 1):
            asked = self.signature_threshold
            raise ValueError(
                f"signature_threshold: {asked} keys are required, but trusted_keys has only {most}"
            )


KEYS = tuple(each.name for each in fields(KernelSettings))
"""The top-level keys; each is also an environment variable, such as JACKFIELD_STORE."""

_KNOWN = (*KEYS, *TABLES, *SECTIONS)


@dataclass(frozen=True, slots=True)
class Settings(KernelSettings):
    """The settings of this process."""

    tables: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """The table of each offer, by kind and name."""

    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The table of each program, such as `[host]`."""

    @classmethod
    def load(
        cls,
        config: Path | None = None,
        environ: Mapping[str, str] = os.environ,
        *,
        faults: SettingsFaults | None = None,
        **flags: Any,
    ) -> Settings:
        """Load the settings of this process; flags that are None or empty are ignored.

        With `faults`, faults are added there and faulty settings get their defaults; without it, a
        `SettingsError` reports them.
        """
        found = SettingsFaults() if faults is None else faults
        document = found.collect(lambda: read_config(config, environ)) or {}
        path = config_path(config, environ)
        folder = folder_of(path)
        for key in (key for key in document if key not in _KNOWN):
            found.add(f"{path} {key}: unknown setting; {_suggest_key(key)}")
        keys = {name: value for name, value in document.items() if name in KEYS}
        if folder is not None:
            keys = FileTable(keys, folder).resolved(KernelSettings)
        variables, origins = read_environment(KernelSettings, PREFIX, environ)
        given = {name: value for name, value in flags.items() if value}
        origins = {name: f"{path} {name}" for name in keys} | origins
        origins |= {name: f"--{name.replace('_', '-')}" for name in given}
        read = read_settings(KernelSettings, keys | variables | given, str(path), found, origins=origins)
        read = read or KernelSettings()
        if folder is not None and "models" not in variables | given:
            # Only their transports know which of these settings are paths.
            models = {
                name: replace(model, settings=FileTable(model.settings, folder))
                for name, model in read.models.items()
            }
            read = replace(read, models=models)
        settings = cls(
            **{name: getattr(read, name) for name in KEYS},
            tables={
                kind: {
                    name: _in_folder(table, folder)
                    for name, table in _offer_tables(path, kind, document[kind], found).items()
                }
                for kind in TABLES
                if kind in document
            },
            sections={
                name: _in_folder(_section(path, name, document[name], found), folder)
                for name in SECTIONS
                if name in document
            },
        )
        if faults is None:
            found.check()
        return settings

    def table(self, kind: str, name: str) -> dict[str, Any]:
        """Return the settings of one offer."""
        table = self._table(kind, name)
        values = {key: value for key, value in table.items() if key != "enabled"}
        return table.copy_with(values) if isinstance(table, FileTable) else values

    def enabled(self, kind: str, name: str) -> bool:
        """Return whether an offer is used; `enabled = false` in its table switches it off."""
        return self._table(kind, name).get("enabled", True) is not False

    def _table(self, kind: str, name: str) -> Mapping[str, Any]:
        return self.tables.get(kind, {}).get(name, {})


def config_path(config: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the named settings file, or else `jackfield.toml` in the working directory."""
    return config or Path(environ.get("JACKFIELD_CONFIG") or CONFIG_FILE)


def read_config(config: Path | None = None, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the content of the settings file; empty if the default file does not exist."""
    import tomllib

    path = config_path(config, environ)
    if not path.exists() and config is None and not environ.get("JACKFIELD_CONFIG"):
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: {error}") from None
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None


def read_environment(
    declaration: type, prefix: str, environ: Mapping[str, str], faults: SettingsFaults | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings in environment variables as a table, and the variable of each setting by its path.

    A double underscore leads into a nested table: JACKFIELD_HOST_JWT__AUDIENCE. With `faults`, a variable
    with the prefix that names no setting is a fault.
    """
    known = declared_fields(declaration)
    table: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for variable, text in sorted(environ.items()):
        if not variable.upper().startswith(prefix) or not text:
            continue
        path = variable[len(prefix) :].lower().split("__")
        if path[0] in known and _put(table, path, known[path[0]][1], text):
            origins[".".join(path)] = variable
        elif faults is not None:
            names = [f"{prefix}{each.upper()}" for each in known]
            faults.add(f"{variable}: unknown setting; {suggest(variable.upper(), names)}")
    return table, origins


def merge_tables(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables, including nested ones; values of the second take precedence."""
    merged = first.copy_with(first) if isinstance(first, FileTable) else dict(first)
    for name, value in second.items():
        before = merged.get(name)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[name] = merge_tables(before, value) if both and before else value
    return merged


def _put(table: MutableMapping[str, Any], path: list[str], hint: Any, text: str) -> bool:
    """Set the value at a path; return False if the path passes through something that is not a table."""
    base, _ = unwrap(hint)
    name, *inner = path
    if not inner:
        table[name] = _from_text(base, text)
        return True
    is_mapping = typing.get_origin(base) in MAPPINGS
    nested = table.setdefault(name, {}) if is_mapping or is_dataclass(base) else None
    if not isinstance(nested, MutableMapping):
        return False
    if is_mapping:
        return _put(nested, inner, typing.get_args(base)[1], text)
    known = declared_fields(typing.cast("type", base))
    return _put(nested, inner, known[inner[0]][1] if inner[0] in known else str, text)


_BOOLEANS = dict.fromkeys(("true", "1", "yes", "on", "t", "y"), True)
_BOOLEANS |= dict.fromkeys(("false", "0", "no", "off", "f", "n"), False)


def _from_text(base: Any, text: str) -> Any:
    """Convert a variable's text to the setting's type; invalid text is kept, and reported by the reader."""
    if base is bool:
        return _BOOLEANS.get(text.lower(), text)
    is_list = typing.get_origin(base) is tuple
    try:
        if base in (int, float) and text.isascii():
            return base(text)
        if is_list and not text.lstrip().startswith("["):
            return [part.strip() for part in text.split(",") if part.strip()]
        if is_list or typing.get_origin(base) in MAPPINGS or is_dataclass(base):
            import json

            return json.loads(text)
    except (ValueError, RecursionError):
        pass
    return text


def _suggest_key(key: str) -> str:
    suggestion = suggest(key, _KNOWN)
    if suggestion.startswith("did"):
        return suggestion
    return f"{suggestion}; host settings belong in [host]"


def _in_folder(table: Mapping[str, Any], folder: Path | None) -> Mapping[str, Any]:
    return table if folder is None else FileTable(table, folder)


def _section(path: Path, name: str, value: Any, faults: SettingsFaults) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    faults.add(f"{path} {name}: expected a table [{name}]")
    return {}


def _offer_tables(path: Path, kind: str, value: Any, faults: SettingsFaults) -> dict[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping):
        faults.add(f"{path} {kind}: expected tables such as [{kind}.NAME]")
        return {}
    tables: dict[str, Mapping[str, Any]] = {}
    for name, table in value.items():
        if not isinstance(table, Mapping):
            faults.add(f"[{kind}] {name}: expected a table [{kind}.{name}]")
        elif not isinstance(table.get("enabled", True), bool):
            faults.add(f"[{kind}.{name}] enabled: expected true or false, got {show_value(table['enabled'])}")
            tables[name] = {key: each for key, each in table.items() if key != "enabled"}
        else:
            tables[name] = table
    return tables
