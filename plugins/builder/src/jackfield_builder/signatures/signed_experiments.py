"""Signs a version of the experiments: writes its envelope, or adds a signature to the existing one."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from jackfield.experiments.definition import MAX_BYTES, ExperimentsError, ExperimentsFile
from jackfield.signatures.dsse_envelope import (
    PAYLOAD_TYPE,
    DsseEnvelope,
    SignatureError,
    envelope_path,
    read_bounded,
)
from jackfield.signatures.public_keys import PublicKey
from jackfield.signatures.statement import (
    EXPERIMENTS_TYPE,
    Statement,
    create_experiments_statement,
    experiments_subjects,
)

from jackfield_builder.signatures.signed_files import add_signature, present_envelope
from jackfield_builder.signatures.signers import Signer


class SignedExperiments(NamedTuple):
    """The result of signing."""

    path: Path
    version: int
    key: PublicKey
    signatures: int
    """How many signatures the envelope has now."""


def sign_experiments(path: Path, signer: Signer, *, expires: datetime | None = None) -> SignedExperiments:
    """Sign the experiments file at `path`; signatures of others on the same version are kept."""
    try:
        data = read_bounded(path, MAX_BYTES)
        version = ExperimentsFile.parse(data, str(path)).version
    except FileNotFoundError:
        raise SignatureError(f"{path}: no such file") from None
    except ExperimentsError as error:
        raise SignatureError(str(error)) from None
    target = envelope_path(path)
    envelope = present_envelope(target)
    if envelope is None or not _describes(envelope, version, data):
        envelope = DsseEnvelope(PAYLOAD_TYPE, create_experiments_statement(version, data, expires), ())
    elif expires is not None:
        raise SignatureError(f"{target}: others have signed already; only the first signature sets an expiry")
    signed = add_signature(target, envelope, signer, f"version {version}")
    return SignedExperiments(target, version, signer.public_key, len(signed.signatures))


def _describes(envelope: DsseEnvelope, version: int, data: bytes) -> bool:
    """Return whether the statement of an envelope is about this version."""
    try:
        statement = Statement.parse(envelope.payload, EXPERIMENTS_TYPE)
    except SignatureError:
        return False
    return not statement.differences(experiments_subjects(version, data))
