"""Verifies an envelope against trusted keys and a file, and reports the result of each check."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from jackfield.contract.snapshot import Snapshot, SnapshotError
from jackfield.signatures.dsse_envelope import DsseEnvelope, Signature, SignatureError
from jackfield.signatures.public_keys import PublicKey, short_id
from jackfield.signatures.statement import (
    EXPERIMENTS_TYPE,
    PREDICATE_TYPE,
    Statement,
    Subjects,
    experiments_subjects,
    file_digest,
    subjects_of,
)


class Fact(NamedTuple):
    """One checked fact, as a sentence without a full stop."""

    holds: bool | None
    """None if the result does not depend on it, such as the signature of an untrusted key."""
    text: str


class Verification(NamedTuple):
    """The checked facts, and the result."""

    facts: tuple[Fact, ...]
    signers: tuple[PublicKey, ...] = ()
    """The distinct trusted keys whose signatures are valid."""
    statement: Statement | None = None
    """The signed statement; None unless enough trusted keys signed it."""
    snapshot: Snapshot | None = None
    """The registry; None unless every check passed."""

    @property
    def problems(self) -> str:
        """The checks that failed; empty if the registry may be served."""
        return "; ".join(fact.text for fact in self.facts if fact.holds is False)

    @property
    def expires(self) -> datetime | None:
        """When the signatures expire."""
        return self.statement.expires if self.statement else None


def verify(
    data: bytes,
    path: Path,
    envelope: bytes,
    keys: Sequence[PublicKey],
    threshold: int,
    *,
    now: datetime | None = None,
) -> Verification:
    """Verify the content of a registry file and of its envelope; nothing is read or fetched."""
    verified = _verify_statement(envelope, keys, threshold, PREDICATE_TYPE, now)
    if verified.statement is None:
        return verified
    snapshot, compared = _compare(data, path, verified.statement)
    return verified._replace(facts=(*verified.facts, compared), snapshot=snapshot)


def verify_experiments(
    data: bytes,
    version: int,
    envelope: bytes,
    keys: Sequence[PublicKey],
    threshold: int,
    *,
    now: datetime | None = None,
) -> Verification:
    """Verify the content of an experiments file and of its envelope; nothing is read or fetched."""
    verified = _verify_statement(envelope, keys, threshold, EXPERIMENTS_TYPE, now)
    if verified.statement is None:
        return verified
    differences = verified.statement.differences(experiments_subjects(version, data))
    fact = Fact(True, f"the experiments file is version {version}, as signed")
    if differences:
        fact = Fact(False, f"the experiments file is not the one that was signed: {'; '.join(differences)}")
    return verified._replace(facts=(*verified.facts, fact))


def _verify_statement(
    envelope: bytes, keys: Sequence[PublicKey], threshold: int, predicate_type: str, now: datetime | None
) -> Verification:
    """Verify the signatures of an envelope, and parse its statement if there are enough."""
    try:
        parsed = DsseEnvelope.parse(envelope, "the envelope")
    except SignatureError as error:
        return Verification((Fact(False, str(error)),))
    signers, ignored = _check_signatures(parsed, keys)
    counted = f"{len(signers)} of {threshold} required trusted keys signed"
    who = f" ({', '.join(each.name for each in signers)})" if signers else ""
    if len(signers) < threshold:
        # The payload is not parsed before enough trusted keys have signed it.
        why = "".join(f"; {each}" for each in ignored)
        return Verification((Fact(False, counted + who + why),), signers)
    facts = [*(Fact(None, f"ignored: {each}") for each in ignored), Fact(True, counted + who)]
    try:
        statement = Statement.parse(parsed.payload, predicate_type)
        expires = statement.expires
    except SignatureError as error:
        return Verification((*facts, Fact(False, str(error))), signers)
    if expires is not None:
        holds = (now or datetime.now(UTC)) < expires
        facts.append(
            Fact(holds, f"the signatures {'expire' if holds else 'expired'} at {expires.isoformat()}")
        )
    return Verification(tuple(facts), signers, statement)


def _check_signatures(
    envelope: DsseEnvelope, keys: Sequence[PublicKey]
) -> tuple[tuple[PublicKey, ...], list[str]]:
    """Return the trusted keys that signed, each once, and why each other signature does not count."""
    signed, ignored, signers = envelope.signed_bytes, list[str](), dict[str, PublicKey]()
    for signature in envelope.signatures:
        signer = _signer(signature, signed, keys)
        if isinstance(signer, str):
            # This matters only if too few others are valid: anybody can add a worthless signature to a file.
            ignored.append(signer)
        elif signer.key_id in signers:
            ignored.append(f"a second signature of {signer.name}; each key counts once")
        else:
            signers[signer.key_id] = signer
    return tuple(signers.values()), ignored


def _signer(signature: Signature, signed: bytes, keys: Sequence[PublicKey]) -> PublicKey | str:
    """Return the trusted key that made a signature, or why there is none."""
    named = [key for key in keys if key.key_id == signature.key_id] if signature.key_id else keys
    if not named:
        return f"the signature of {short_id(signature.key_id)}, which is not a trusted key"
    for key in named:
        if key.verifies(signature.value, signed):
            return key
    if signature.key_id:
        return f"the signature of {named[0].name} is wrong: the statement was altered, or another key made it"
    return "a signature without a key id, which no trusted key made"


def _compare(data: bytes, path: Path, statement: Statement) -> tuple[Snapshot | None, Fact]:
    digest = file_digest(data)
    intact = any(each.get("sha256") == digest for each in statement.subjects.values())
    subjects: Subjects = {}
    snapshot = None
    try:
        snapshot = Snapshot.parse(data, path)
        subjects = subjects_of(snapshot, digest)
    except SnapshotError as error:
        if intact:
            return None, Fact(False, str(error))
    differences = statement.differences(subjects) if snapshot else []
    if not intact:
        details = f": {'; '.join(differences)}" if differences else ""
        return None, Fact(False, f"the registry file is not the one that was signed{details}")
    if differences:
        return None, Fact(False, f"the statement does not describe this registry: {'; '.join(differences)}")
    tools = sum(name.startswith("tool:") for name in subjects)
    plugins = sum(name.startswith("plugin:") for name in subjects)
    components = 0
    with suppress(KeyError, TypeError):
        components = len(statement.predicate["sbom"]["components"])
    return snapshot, Fact(
        True,
        f"the registry file, its tools ({tools}) and its plugins ({plugins}) match the signed statement; "
        f"components in the SBOM: {components}",
    )
