"""Reads an OpenAPI document: JSON or YAML, version 3.0 or 3.1, checked and limited."""

from __future__ import annotations

import math
from typing import Any

from jackfield.strict_json import pointer

from jackfield_importers.definitions import dereferenced
from jackfield_importers.errors import SourceError
from jackfield_importers.literals import shortened

MAX_BYTES = 16 * 1024 * 1024
MAX_NODES = 2_000_000
MAX_DEPTH = 200
VERSIONS = ("3.0", "3.1")


def parse_document(data: bytes, name: str) -> dict[str, Any]:
    """Return the document; raises `SourceError` with one sentence if it is not valid."""
    if len(data) > MAX_BYTES:
        raise SourceError(f"{name} is larger than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{name} is not UTF-8: byte {error.start} cannot be decoded") from None
    document = _PlainData(name).value(_parsed(text, name))
    _check_version(document, name)
    _check_references(document, name)
    _check_specification(document, name)
    return document  # type: ignore[no-any-return]


def _parsed(text: str, name: str) -> Any:
    import json

    import yaml

    if text.lstrip()[:1] in {"{", "["}:
        try:
            return json.loads(text)
        except RecursionError:
            raise SourceError(f"{name} is nested too deeply") from None
        except ValueError as error:
            # YAML's flow style starts with the same characters.
            problem = f"{name} is not JSON: {error}"
    else:
        problem = ""
    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a subclass of the safe loader
    except RecursionError:
        raise SourceError(f"{name} is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        told = problem or f"{name} is neither JSON nor YAML: {' '.join(str(error).split())}"
        raise SourceError(shortened(told, 300)) from None


def _loader() -> Any:
    """Return a safe loader without timestamps, so that a date stays text, as in JSON."""
    import yaml

    # The parser in C is ten times as fast, but not part of every installation.
    safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    resolvers = {
        first: [each for each in known if each[0] != "tag:yaml.org,2002:timestamp"]
        for first, known in safe.yaml_implicit_resolvers.items()
    }
    return type("PlainLoader", (safe,), {"yaml_implicit_resolvers": resolvers})


class _PlainData:
    """Copies parsed data into plain JSON values and enforces the limits, even for nested aliases."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes = 0

    def value(self, given: Any, depth: int = 0) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise SourceError(f"{self._name} has more than {MAX_NODES} values")
        if depth > MAX_DEPTH:
            raise SourceError(f"{self._name} is nested too deeply")
        if isinstance(given, dict):
            return {self._key(key): self.value(each, depth + 1) for key, each in given.items()}
        if isinstance(given, list):
            return [self.value(each, depth + 1) for each in given]
        if isinstance(given, str):
            return self._text(given)
        if isinstance(given, bool) or given is None:
            return given
        if isinstance(given, int) and -(2**63) <= given < 2**63:
            return given
        if isinstance(given, float) and math.isfinite(given):
            return given
        if isinstance(given, int | float):
            raise SourceError(
                f"{self._name} has a number that JSON cannot represent safely: {str(given)[:30]}"
            )
        raise SourceError(f"{self._name} has a value that is not JSON: a {type(given).__name__}")

    def _key(self, key: Any) -> str:
        # YAML reads the status code of `200:` as a number.
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise SourceError(
                f"{self._name} has a key that is not a string: {str(key)[:30]!r}; put it in quotes"
            )
        return self._text(str(key))

    def _text(self, text: str) -> str:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise SourceError(f"{self._name} has a string with an unpaired surrogate") from None
        return text


def _check_version(document: Any, name: str) -> None:
    if not isinstance(document, dict) or not document.keys() & {"openapi", "swagger"}:
        raise SourceError(f"{name} is not an OpenAPI document: it has no member `openapi`")
    if "openapi" not in document:
        raise SourceError(f"{name} is a Swagger 2.0 document; convert it to OpenAPI 3 first")
    version = document["openapi"]
    if not isinstance(version, str) or not version.startswith(tuple(f"{each}." for each in VERSIONS)):
        raise SourceError(f"{name} declares OpenAPI {str(version)[:20]!r}; 3.0 and 3.1 are supported")


def _check_references(document: dict[str, Any], name: str) -> None:
    """Check every reference before a library follows it: nothing is ever downloaded."""
    waiting: list[Any] = [document]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            # A schema may have a property that is called `$ref`; then the value is a schema.
            if isinstance(reference, str):
                try:
                    dereferenced(document, each)
                except SourceError as error:
                    raise SourceError(f"{name}: {error}") from None
            # Examples are data, in which `$ref` means nothing.
            waiting.extend(
                value for key, value in each.items() if key not in {"example", "examples", "default"}
            )
        elif isinstance(each, list):
            waiting.extend(each)


def _check_specification(document: dict[str, Any], name: str) -> None:
    from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator

    is_31 = document["openapi"].startswith("3.1.")
    validator = OpenAPIV31SpecValidator if is_31 else OpenAPIV30SpecValidator
    try:
        first = next(iter(validator(document).iter_errors()), None)
    except RecursionError:
        raise SourceError(f"{name} has circular references that cannot be resolved") from None
    if first is None:
        return
    place = pointer(*first.absolute_path)
    raise SourceError(
        f"{name} is not valid OpenAPI at {shortened(place, 200)}: {_first_clause(first.message)}"
    )


def _first_clause(message: str) -> str:
    """Return the problem, without the parts of the specification's schema that the validator appends."""
    clause = " ".join(message.partition("\n")[0].split())
    # The clause starts with the rejected value, which may be long; the reason is at the end.
    return clause if len(clause) <= 240 else f"{clause[:120]} ... {clause[-100:]}"
