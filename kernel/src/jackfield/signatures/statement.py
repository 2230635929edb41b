"""The signed statement: an in-toto Statement v1 about a registry with its parts, or about another file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from jackfield.contract.snapshot import Snapshot
from jackfield.signatures.dsse_envelope import SignatureError, parse_object

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"

PREDICATE_TYPE = "urn:jackfield:registry:1"

EXPERIMENTS_TYPE = "urn:jackfield:experiments:1"
"""The predicate type of statements about an experiments file."""

MAX_NAMED = 5
"""How many differing tools and plugins a message names."""

Subjects = Mapping[str, Mapping[str, str]]


class Statement(NamedTuple):
    """A parsed statement, without anything that this module does not check."""

    subjects: Subjects
    """The digests by name."""
    predicate: Mapping[str, Any]

    @classmethod
    def parse(cls, payload: bytes, predicate_type: str = PREDICATE_TYPE) -> Statement:
        """Parse the payload of an envelope; raises `SignatureError`."""
        document = parse_object(payload, "the signed statement")
        if document.get("_type") != STATEMENT_TYPE:
            raise SignatureError(f"the signed statement is not an in-toto statement ({STATEMENT_TYPE})")
        if document.get("predicateType") != predicate_type:
            raise SignatureError(
                f"the signed statement is about something else: its predicate type is not {predicate_type}"
            )
        predicate, subjects = document.get("predicate"), document.get("subject")
        if not isinstance(predicate, dict) or not isinstance(subjects, list):
            raise SignatureError("the signed statement has no predicate or no subjects")
        if predicate_type == PREDICATE_TYPE and not _is_sbom(predicate.get("sbom")):
            raise SignatureError("the signed statement contains no CycloneDX SBOM")
        named = {}
        for subject in subjects:
            name, digest = _subject(subject)
            if name in named:
                raise SignatureError(f"the signed statement has two subjects called {name[:80]!r}")
            named[name] = digest
        return cls(named, predicate)

    @property
    def expires(self) -> datetime | None:
        """The time at which the signatures expire; None if they never do."""
        text = self.predicate.get("expires")
        if text is None:
            return None
        try:
            moment = datetime.fromisoformat(text)
        except (TypeError, ValueError):
            raise SignatureError("the signed statement has an expiry that is not a time") from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def differences(self, subjects: Subjects) -> list[str]:
        """Return how a registry differs from the signed one, as clauses; empty if it does not."""
        clauses = []
        for what, names in (
            (
                "differs from the signed version",
                [n for n in subjects if self.subjects.get(n, subjects[n]) != subjects[n]],
            ),
            ("was not signed", [name for name in subjects if name not in self.subjects]),
            ("was signed but is missing", [name for name in self.subjects if name not in subjects]),
        ):
            shown = [name[:80] if name.isprintable() else ascii(name[:80]) for name in sorted(names)]
            clauses += [f"{name} {what}" for name in shown[:MAX_NAMED]]
            if len(shown) > MAX_NAMED:
                clauses.append(f"{len(shown) - MAX_NAMED} more: {what}")
        return clauses


def file_digest(data: bytes) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(data).hexdigest()


def subjects_of(snapshot: Snapshot, digest: str) -> Subjects:
    """Return the digests of a registry file, its tools and its plugins, by name.

    `sha256` is the hash of the file, or of the entry as the file contains it. The other digests are those of
    the installed packages, taken from the entry.
    """
    return {f"registry:{snapshot.version}": {"sha256": digest}, **dict(_entries(snapshot))}


def _entries(snapshot: Snapshot) -> Iterator[tuple[str, dict[str, str]]]:
    for tool in snapshot.wire["tools"]:
        yield f"tool:{tool['toolId']}", _digests(tool)
    for plugin in snapshot.wire["plugins"]:
        yield f"plugin:{plugin['distribution']['name']}:{plugin['name']}", _digests(plugin)


def _digests(entry: Mapping[str, Any]) -> dict[str, str]:
    digests = {"sha256": hashlib.sha256(orjson.dumps(entry, option=orjson.OPT_SORT_KEYS)).hexdigest()}
    for name, member in (("packageSha256", "contentHash"), ("codeSha256", "codeHash")):
        if found := entry["distribution"].get(member):
            digests[name] = found.removeprefix("sha256:")
    return digests


def create_statement(
    snapshot: Snapshot, data: bytes, sbom: Mapping[str, Any], expires: datetime | None = None
) -> bytes:
    """Return the payload that states what a registry consists of."""
    wire = snapshot.wire
    named = ("version", "contentHash", "formatVersion", "gitCommit", "buildTimestamp")
    predicate: dict[str, Any] = {
        "registry": {name: wire[name] for name in named},
        "kernel": wire["kernel"],
        "sbom": sbom,
    }
    return _payload(subjects_of(snapshot, file_digest(data)), PREDICATE_TYPE, predicate, expires)


def experiments_subjects(version: int, data: bytes) -> Subjects:
    """Return the digest of an experiments file, by its name."""
    return {f"experiments:{version}": {"sha256": file_digest(data)}}


def create_experiments_statement(version: int, data: bytes, expires: datetime | None = None) -> bytes:
    """Return the payload that states the content of a version of the experiments."""
    return _payload(
        experiments_subjects(version, data), EXPERIMENTS_TYPE, {"experiments": {"version": version}}, expires
    )


def _payload(
    subjects: Subjects, predicate_type: str, predicate: dict[str, Any], expires: datetime | None
) -> bytes:
    if expires is not None:
        predicate["expires"] = expires.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": digest} for name, digest in subjects.items()],
        "predicateType": predicate_type,
        "predicate": predicate,
    }
    return orjson.dumps(document)


def _is_sbom(value: Any) -> bool:
    return isinstance(value, dict) and value.get("bomFormat") == "CycloneDX"


def _subject(value: Any) -> tuple[str, dict[str, str]]:
    if isinstance(value, dict):
        name, digest = value.get("name"), value.get("digest")
        if isinstance(name, str) and isinstance(digest, dict) and digest:
            return name, digest
    raise SignatureError("the signed statement has a subject without a name or without a digest")
