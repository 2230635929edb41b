"""Signs a registry: writes its envelope, or adds a signature to the existing one."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from jackfield.contract.snapshot import Snapshot, read_registry
from jackfield.signatures.dsse_envelope import PAYLOAD_TYPE, DsseEnvelope, SignatureError, envelope_path
from jackfield.signatures.public_keys import PublicKey
from jackfield.signatures.statement import Statement, create_statement, file_digest, subjects_of

from jackfield_builder.signatures.sbom import create_sbom, installed_versions, listed_versions
from jackfield_builder.signatures.signed_files import add_signature, present_envelope
from jackfield_builder.signatures.signers import Signer


class SignedRegistry(NamedTuple):
    """The result of signing."""

    path: Path
    version: str
    key: PublicKey
    signatures: int
    """How many signatures the envelope has now."""
    components: int
    """How many components the bill of materials lists."""
    replaced: bool
    """True if the file had an envelope of another registry."""
    unlike: tuple[str, ...]
    """How the statement's bill of materials differs from this environment, if others signed it first."""


def sign_registry(path: Path, signer: Signer, *, expires: datetime | None = None) -> SignedRegistry:
    """Sign the registry at `path`.

    If others have signed the same registry, their statement is signed too, so that the signatures count
    together. Otherwise the statement is created, with a bill of materials of this environment.
    """
    data = read_registry(path)
    snapshot = Snapshot.parse(data, path)
    target = envelope_path(path)
    present = present_envelope(target)
    envelope = present if present and _describes(present, snapshot, data) else None
    unlike: tuple[str, ...] = ()
    if envelope is None:
        payload = create_statement(snapshot, data, create_sbom(snapshot), expires)
        envelope = DsseEnvelope(PAYLOAD_TYPE, payload, ())
    else:
        if expires is not None:
            raise SignatureError(
                f"{target}: others have signed already; only the first signature sets an expiry"
            )
        unlike = _unlike_installed(envelope)
    signed = add_signature(target, envelope, signer, "this registry")
    listed = listed_versions(Statement.parse(signed.payload).predicate["sbom"])
    replaced = present is not None and present.payload != signed.payload
    return SignedRegistry(
        target, snapshot.version, signer.public_key, len(signed.signatures), len(listed), replaced, unlike
    )


def _describes(envelope: DsseEnvelope, snapshot: Snapshot, data: bytes) -> bool:
    """Return whether the statement of an envelope is about this registry."""
    try:
        statement = Statement.parse(envelope.payload)
    except SignatureError:
        return False
    return not statement.differences(subjects_of(snapshot, file_digest(data)))


def _unlike_installed(envelope: DsseEnvelope) -> tuple[str, ...]:
    signed = listed_versions(Statement.parse(envelope.payload).predicate["sbom"])
    here = installed_versions()
    return tuple(
        f"{name} ({signed.get(name, 'not listed')} in the statement, {here.get(name, 'not installed')} here)"
        for name in sorted({*signed, *here})
        if signed.get(name) != here.get(name)
    )
