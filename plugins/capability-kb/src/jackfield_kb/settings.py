"""What a deployment says about its knowledge base in `[capabilities.kb]`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jackfield.settings import SettingsError

from jackfield_kb import embedding
from jackfield_kb.access import SHARED, Access

if TYPE_CHECKING:
    from jackfield_kb.embedding import Embedder
    from jackfield_kb.library import Library

WHERE = "[capabilities.kb]"
LOCAL, OPENAI, OFF = "local", "openai", "off"
EVERYBODY, USERS = "everybody", "users"
_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "folder": (str, "a path"),
    "embeddings": (str, f'"{LOCAL}", "{OPENAI}" or "{OFF}"'),
    "model": (str, "the name of a model"),
    "base_url": (str, "an address that begins with http:// or https://"),
    "api_key_env": (str, "the name of an environment variable"),
    "timeout": ((int, float), "a number of seconds above 0"),
    "patience": ((int, float), "a number of seconds above 0"),
    "access": (Mapping, f'a table such as {{ studio = "{USERS}" }}'),
}


@dataclass(frozen=True, slots=True)
class KnowledgeSettings:
    """The settings, checked."""

    folder: Path = Path("knowledge")
    embeddings: str = ""
    """How texts become vectors; empty takes the local model where it is installed."""

    model: str = "text-embedding-3-small"
    base_url: str | None = None
    api_key_env: str = ""
    timeout: float = 10.0
    """How long an embedding endpoint may take to answer, in seconds."""

    patience: float = 5.0
    """How long a search may take before a tool is told to try again, in seconds."""

    access: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Who sees a shared namespace: `everybody`, `users` (whoever is known by name), or these users."""

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> KnowledgeSettings:
        """The settings of a table; `SettingsError` for one that cannot be used."""
        for name, value in table.items():
            _check(name, value)
        given = dict(table)
        if "folder" in given:
            given["folder"] = Path(given["folder"]).expanduser()
        if "access" in given:
            given["access"] = {name: _who(name, value) for name, value in given["access"].items()}
        settings = cls(**given)
        if settings.embeddings != OPENAI and (unused := given.keys() & {"model", "base_url", "api_key_env"}):
            raise SettingsError(f'{WHERE} {min(unused)} is only used with embeddings = "{OPENAI}"')
        return settings

    def access_of(self, user: str | None) -> Access:
        """What a user may see."""
        return Access.of(user, (name for name in SHARED if self._sees(user, name)))

    def _sees(self, user: str | None, namespace: str) -> bool:
        who = self.access.get(namespace, EVERYBODY)
        if isinstance(who, tuple):
            return user in who
        return who == EVERYBODY or bool(user)

    def embedder(self) -> Embedder | None:
        """What makes vectors; None when nothing does."""
        if self.embeddings == OPENAI:
            from jackfield_kb.embedding import Endpoint

            return Endpoint(self.model, base_url=self.base_url, api_key=self._key(), timeout=self.timeout)
        missing = embedding.missing()
        if self.embeddings == LOCAL and missing:
            raise SettingsError(
                f'{WHERE} embeddings = "{LOCAL}" needs {", ".join(missing)}; '
                "install jackfield-capability-kb[embeddings]"
            )
        return None if self.embeddings == OFF or missing else embedding.LocalModel()

    def _key(self) -> str:
        name = self.api_key_env or "OPENAI_API_KEY"
        key = os.environ.get(name, "")
        # A model that runs on one's own machine mostly asks for no key.
        if not key and (self.api_key_env or self.base_url is None):
            raise SettingsError(
                f'{WHERE} embeddings = "{OPENAI}" needs a key in the environment variable {name}'
            )
        return key or "none"


def open_library(table: Mapping[str, Any], notice: Callable[[str], None] | None = None) -> Library:
    """The library that the settings name."""
    from jackfield_kb.library import Library, log

    settings = KnowledgeSettings.read(table)
    embedder = settings.embedder()
    tell = notice or log
    if embedder is None and settings.embeddings != OFF:
        tell(
            "no embeddings: records are searched by their words alone; "
            "install jackfield-capability-kb[embeddings] to search by meaning as well"
        )
    return Library(settings.folder, embedder=embedder, notice=tell)


def _check(name: str, value: Any) -> None:
    if name not in _KINDS:
        close = get_close_matches(name, _KINDS, 1)
        meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(_KINDS)}"
        raise SettingsError(f"{WHERE} has no setting {name!r}; {meant}")
    kind, wanted = _KINDS[name]
    fits = isinstance(value, kind) and not isinstance(value, bool) and bool(value)
    if fits and name == "embeddings":
        fits = value in (LOCAL, OPENAI, OFF)
    elif fits and name == "base_url":
        fits = value.startswith(("http://", "https://"))
    elif fits and kind == (int, float):
        fits = 0 < value < float("inf")
    if not fits and not (name == "access" and value == {}):
        raise SettingsError(f"{WHERE} {name} is {wanted}, not {value!r}")


def _who(namespace: str, value: Any) -> str | tuple[str, ...]:
    if namespace not in SHARED:
        raise SettingsError(
            f"{WHERE} access is set for {' and '.join(SHARED)}, not for {namespace!r}"
            + ("; personal records are their owner's" if namespace == "personal" else "")
        )
    if value in (EVERYBODY, USERS):
        return str(value)
    if isinstance(value, list) and all(isinstance(user, str) and user for user in value):
        return tuple(value)
    raise SettingsError(
        f'{WHERE} access.{namespace} is "{EVERYBODY}", "{USERS}" or a list of users, not {value!r}'
    )
