"""Adds a signature to the envelope beside a file."""

from __future__ import annotations

from pathlib import Path

from jackfield.atomic_files import write_atomically
from jackfield.signatures.dsse_envelope import (
    MAX_SIGNATURES,
    DsseEnvelope,
    Signature,
    SignatureError,
    UnsignedError,
    pre_authentication_encoding,
    read_envelope,
)

from jackfield_builder.signatures.signers import Signer


def present_envelope(target: Path) -> DsseEnvelope | None:
    """Return the envelope in a file; None if the file does not exist."""
    try:
        return DsseEnvelope.parse(read_envelope(target), str(target))
    except UnsignedError:
        return None
    except SignatureError as error:
        raise SignatureError(f"{error}; remove the file to create a new envelope") from None


def add_signature(target: Path, envelope: DsseEnvelope, signer: Signer, what: str) -> DsseEnvelope:
    """Add a signature to an envelope and write it; `what` names the signed file in messages."""
    key = signer.public_key
    if any(key.verifies(each.value, envelope.signed_bytes) for each in envelope.signatures):
        raise SignatureError(f"{target}: {key.name} has signed {what} already")
    if len(envelope.signatures) >= MAX_SIGNATURES:
        raise SignatureError(
            f"{target}: the envelope already has {MAX_SIGNATURES} signatures, which is the maximum"
        )
    signed = envelope._replace(signatures=(*envelope.signatures, _signature(signer, envelope)))
    write_atomically(target, signed.dumps())
    # The envelope contains no secret, and the host may run as another user.
    target.chmod(0o644)
    return signed


def _signature(signer: Signer, envelope: DsseEnvelope) -> Signature:
    data = pre_authentication_encoding(envelope.payload_type, envelope.payload)
    value = signer.sign(data)
    if not signer.public_key.verifies(value, data):
        raise SignatureError("the signature does not match the public key; nothing was written")
    return Signature(signer.public_key.key_id, value)
