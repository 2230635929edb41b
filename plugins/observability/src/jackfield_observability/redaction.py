"""Redaction: values without secrets, cut to length, that JSON can encode."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from jackfield.registry.arguments import resolve

SENSITIVE_KEYWORDS = ("writeOnly", "x-sensitive")
"""A schema with one of these set to true describes a value that must not be logged."""

_SUBSCHEMA_KEYWORDS = (
    "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_LIST_KEYWORDS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAP_KEYWORDS = ("dependentSchemas", "patternProperties")


class SensitiveProperties(NamedTuple):
    """The sensitive properties of a schema, or the arguments as a whole."""

    names: frozenset[str]
    everything: bool


def sensitive_properties(parameters: Mapping[str, Any]) -> SensitiveProperties:
    """Return the sensitive properties of a schema.

    A name counts wherever it appears, because invalid arguments are logged too and may have it elsewhere. A
    mark on the items of an array or in a branch of `anyOf` counts for the property that holds it.
    """
    return _SensitivityReader(parameters).read()


def property_names(schema: Any) -> set[str]:
    """Return every property name of a schema, at any depth."""
    if isinstance(schema, list):
        return {name for item in schema for name in property_names(item)}
    if not isinstance(schema, Mapping):
        return set()
    named = set(_mapping(schema.get("properties")))
    return named.union(*(property_names(value) for value in schema.values()))


class _SensitivityReader:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._names: set[str] = set()
        self._marked: set[str] = set()
        self._visited: set[str] = set()

    def read(self) -> SensitiveProperties:
        # References may be circular or lead to a later mark: repeat until nothing changes.
        while True:
            known = len(self._marked)
            self._visited.clear()
            everything = self._holds_mark(self._root)
            if len(self._marked) == known:
                return SensitiveProperties(frozenset(self._names), everything)

    def _holds_mark(self, schema: Any) -> bool:
        if not isinstance(schema, Mapping):
            return False
        marked = any(schema.get(mark) is True for mark in SENSITIVE_KEYWORDS)
        for name, member in _mapping(schema.get("properties")).items():
            if self._holds_mark(member):
                self._names.add(name)
        for branch in _branches(schema):
            marked |= self._holds_mark(branch)
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema:
                marked |= self._reference_holds_mark(schema[keyword])
        return marked

    def _reference_holds_mark(self, reference: Any) -> bool:
        if reference not in self._visited:
            self._visited.add(reference)
            if self._holds_mark(self._target(reference)):
                self._marked.add(reference)
        return reference in self._marked

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return _UNKNOWN
        try:
            return resolve(self._root, reference)
        except (LookupError, ValueError, TypeError):
            return _UNKNOWN


# A reference that cannot be resolved may lead to anything, so it counts as sensitive.
_UNKNOWN = {SENSITIVE_KEYWORDS[1]: True}


def _branches(schema: Mapping[str, Any]) -> Iterator[Any]:
    for keyword in _SUBSCHEMA_KEYWORDS:
        yield schema.get(keyword)
    for keyword in _LIST_KEYWORDS:
        members = schema.get(keyword)
        yield from members if isinstance(members, list) else ()
    for keyword in _MAP_KEYWORDS:
        yield from _mapping(schema.get(keyword)).values()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


REDACTED = "[redacted]"

MAX_TEXT = 500
MAX_NAME = 100
MAX_ID = 200
MAX_JUDGED = 1000
MAX_MEMBERS = 100
MAX_DEPTH = 16

Secrets = frozenset[str] | None

_NUMBERS = (int, float)
_LISTS = (list, tuple, set, frozenset)
_WRITTEN_AS_TEXT = (date, UUID)
_SCALARS = frozenset((str, int, float, bool, type(None)))

# Shorter secrets occur in so many harmless texts that replacing them would make the log useless.
_SHORTEST_SECRET = 4

_SECRET_NAME = re.compile(
    r"passw(?:or)?d|passphrase|passcode|api_?key|authori[sz]ation|credential|private_?key|access_?key|bearer"
    r"|(?:^|_)(?:pwd|secrets?|token|cookies?|jwt|otp)(?:_|$)|(?:access|auth|refresh|session|id)_?tokens?$"
    r"|clientsecret"
)
_SECRET_TEXT = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"
    r"|(?i:\b(?:bearer|basic)\s+[\w.~+/=-]{8,})"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|\b(?:sk|pk|rk)[-_][\w-]{16,}"
    r"|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bxox[abprs]-[\w-]{10,}|\bAKIA[A-Z0-9]{16}|\bAIza[\w-]{30,}"
    # Also at the end of a longer name, and as a member of an object inside a text.
    r"|(?i:(?:passw(?:or)?d|pwd|passphrase|passcode|api[_-]?key|secret|token|authorization)\\*[\"']?\s*[=:]\s*)"
    r"(?:(?i:bearer|basic)\s+)?(?:\\*\"[^\"]*\"?|\\*'[^']*'?|[^\s&,;\"'\\]+)",
    re.DOTALL,
)
# Searching for these takes a tenth of the time, and most texts contain none.
_HINTS = (
    "://", "private key", "bearer", "basic", "eyj", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "ghp_", "gho_",
    "ghu_", "ghs_", "ghr_", "github_pat", "xox", "akia", "aiza", "passw", "passp", "passc",
    "pwd", "api", "secret", "token", "authori",
)  # fmt: skip
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


def _plain(name: str) -> str:
    """Return a name in a normalised form: `apiKey`, `API-KEY` and `api_key` become the same."""
    return _NOT_IN_A_NAME.sub("_", _WORD_STARTS.sub("_", name).lower()).strip("_")


def _may_hold_secret(value: str) -> bool:
    lowered = value.lower()
    for hint in _HINTS:  # noqa: SIM110 - any() takes twice as long
        if hint in lowered:
            return True
    return False


def text(value: str) -> str:
    """Return a text without secrets, cut to the maximum length."""
    # Search more than is kept, so that a secret is seen whole before the cut.
    seen = shown = value[: 4 * MAX_TEXT]
    if _may_hold_secret(seen):
        shown = _SECRET_TEXT.sub(REDACTED, seen)
    if not shown.isascii():
        # Half of a surrogate pair cannot be encoded as UTF-8.
        shown = shown.encode("utf-8", "replace").decode()
    if len(shown) > MAX_TEXT or len(seen) < len(value):
        return f"{shown[:MAX_TEXT]}[cut: {len(value)} characters]"
    return shown


@lru_cache(4096)
def name(value: str) -> str:
    """Return a short, frequent text without secrets, such as a member name or an id; cached."""
    return text(value)


def identifier(value: str) -> str:
    """Return an id unchanged, unless it is too long or not ASCII."""
    return value if len(value) <= MAX_ID and value.isascii() else text(value)


class Redactor:
    """Redacts the arguments and notes of one tool's calls."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        marked = sensitive_properties(parameters)
        self._names = frozenset(_plain(name[:MAX_NAME]) for name in marked.names)
        self._everything = marked.everything
        self._judged: dict[Any, bool] = {}
        closed = parameters.get("additionalProperties") is False
        self._schema_is_harmless = closed and not (
            marked.everything
            or self._names
            or any(self._is_secret(name) for name in property_names(parameters))
        )

    def secrets(self, arguments: Mapping[str, Any], *, validated: bool = False) -> Secrets:
        """Return the values that must not be logged anywhere; None if nothing is secret.

        Valid arguments have only members that the schema names, so if it names no secret, there is nothing
        to search for.
        """
        if validated and self._schema_is_harmless:
            return None
        found: set[str] = set()
        self._collect(arguments, found, within=self._everything)
        long_enough = [each for each in found if len(each) >= _SHORTEST_SECRET]
        return frozenset(form for each in long_enough for form in _forms(each)) if found else None

    def arguments(self, arguments: Mapping[str, Any], secrets: Secrets) -> Any:
        """Return the arguments without secrets."""
        if self._everything:
            return REDACTED
        as_it_is = _harmless(arguments) if secrets is None else None
        return as_it_is or self.shown(arguments, secrets)

    def shown(self, value: Any, secrets: Secrets, depth: int = MAX_DEPTH) -> Any:
        """Return a value from a model, a handler or a policy without secrets."""
        if isinstance(value, str):
            return REDACTED if secrets and any(secret in value for secret in secrets) else text(value)
        if value is None or isinstance(value, _NUMBERS):
            return _number(value, secrets)
        if depth == 0:
            return "[too deep]"
        if isinstance(value, Mapping):
            return self._members(value, secrets, depth - 1)
        if isinstance(value, _LISTS):
            shown = [self.shown(item, secrets, depth - 1) for item in islice(value, MAX_MEMBERS)]
            return shown if len(value) <= MAX_MEMBERS else [*shown, f"[{len(value) - MAX_MEMBERS} more]"]
        # Other objects would be encoded by their own code, which knows nothing about secrets.
        return value if isinstance(value, _WRITTEN_AS_TEXT) else f"[{type(value).__name__}]"

    def _members(self, members: Mapping[Any, Any], secrets: Secrets, depth: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for key, value in islice(members.items(), MAX_MEMBERS):
            called = str(key)[:MAX_NAME]
            if secrets and any(secret in called for secret in secrets):
                called = REDACTED
            shown[name(called)] = REDACTED if self._is_secret(key) else self.shown(value, secrets, depth)
        if len(members) > MAX_MEMBERS:
            shown["[more]"] = len(members) - MAX_MEMBERS
        return shown

    def _is_secret(self, key: Any) -> bool:
        judged = self._judged.get(key)
        if judged is None:
            plain = _plain(str(key)[:MAX_NAME])
            judged = plain in self._names or bool(_SECRET_NAME.search(plain))
            if len(self._judged) < MAX_JUDGED and len(str(key)) <= MAX_NAME:
                self._judged[key] = judged
        return judged

    def _collect(self, value: Any, found: set[str], *, within: bool) -> None:
        if isinstance(value, Mapping):
            for key, member in value.items():
                if self._is_secret(key):
                    found.add("")
                    self._collect(member, found, within=True)
                elif within or type(member) not in _SCALARS:
                    self._collect(member, found, within=within)
        elif isinstance(value, _LISTS):
            for item in value:
                if within or type(item) not in _SCALARS:
                    self._collect(item, found, within=within)
        elif within and value is not None and not isinstance(value, bool):
            found.add(str(value))


def _forms(secret: str) -> set[str]:
    """Return a secret unchanged, and as it appears in the text form of an object."""
    return {
        secret,
        repr(secret)[1:-1],
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    }


def _harmless(arguments: Mapping[str, Any]) -> orjson.Fragment | None:
    """Return short arguments without any hint of a secret, already encoded; this is the usual case."""
    try:
        written = orjson.dumps(arguments)
    except TypeError:
        return None
    if len(written) > MAX_TEXT or _may_hold_secret(written.decode()):
        return None
    return orjson.Fragment(written)


def _number(value: float | None, secrets: Secrets) -> float | str | None:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return f"[integer of {value.bit_length()} bits]"
    return REDACTED if secrets and str(value) in secrets else value
