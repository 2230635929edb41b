"""Versions of the experiments file: read, verified, and compared with the one in effect."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from jackfield.experiments.definition import MAX_BYTES, ExperimentsError, ExperimentsFile
from jackfield.signatures.dsse_envelope import SignatureError, envelope_path, read_bounded, read_envelope
from jackfield.signatures.requirement import Stamp, file_stamp

if TYPE_CHECKING:
    from jackfield.settings import Settings

UNSIGNED = "the experiments are not signed: run `jackfield sign --experiments`"


class SignedVersion(NamedTuple):
    """The content of an experiments file and of its envelope, if it has one; not yet verified."""

    data: bytes
    envelope: bytes | None

    def to_wire(self) -> bytes:
        """Return both as one value, so that no reader gets one without the other."""
        parts = (self.data, self.envelope or b"")
        return orjson.dumps([base64.b64encode(each).decode() for each in parts])

    @classmethod
    def from_wire(cls, wire: bytes) -> SignedVersion:
        """Create a signed version from its stored value; raises `ExperimentsError`."""
        try:
            data, envelope = (base64.b64decode(each, validate=True) for each in orjson.loads(wire))
        except (ValueError, TypeError):
            raise ExperimentsError("the experiments in the store are damaged") from None
        return cls(data, envelope or None)


class ExperimentsSource:
    """The experiments file of a deployment, and the signatures that it needs."""

    def __init__(self, path: Path, keys: tuple[str, ...], threshold: int, *, production: bool) -> None:
        self.path = path
        self.production = production
        self._envelope = envelope_path(path)
        self._keys = keys
        self._threshold = threshold

    @classmethod
    def of(cls, settings: Settings) -> ExperimentsSource | None:
        """Return the source of a deployment; None without experiments."""
        if settings.experiments is None:
            return None
        production = settings.deployment == "production"
        return cls(
            settings.experiments, settings.trusted_keys, settings.signature_threshold, production=production
        )

    @property
    def checks_signatures(self) -> bool:
        """True if a version without enough signatures is refused."""
        return self.production and bool(self._keys)

    def stamp(self) -> tuple[Stamp, Stamp]:
        """Return a value that changes whenever the file or its envelope changes."""
        return file_stamp(str(self.path)), file_stamp(str(self._envelope))

    def read(self) -> SignedVersion:
        """Read the file and its envelope; raises `ExperimentsError`."""
        try:
            data = read_bounded(self.path, MAX_BYTES)
            envelope = read_envelope(self._envelope, fix=UNSIGNED) if self.checks_signatures else None
        except FileNotFoundError:
            raise ExperimentsError(f"{self.path}: no such file; the setting `experiments` names it") from None
        except SignatureError as error:
            raise ExperimentsError(f"{self.path}: {error}") from None
        return SignedVersion(data, envelope)

    def verify(self, version: SignedVersion, where: str = "") -> ExperimentsFile:
        """Return the experiments of a version; raises `ExperimentsError` if it may not be used."""
        where = where or str(self.path)
        if not self.checks_signatures:
            return ExperimentsFile.parse(version.data, where)
        # The check needs the version, which the signed statement names; nothing else is used before it.
        parsed = ExperimentsFile.parse(version.data, where)
        if version.envelope is None:
            raise ExperimentsError(f"{where}: {UNSIGNED}")
        from jackfield.signatures.public_keys import read_trusted_keys
        from jackfield.signatures.verification import verify_experiments

        try:
            keys = read_trusted_keys(self._keys, self._threshold)
        except SignatureError as error:
            raise ExperimentsError(str(error)) from None
        verified = verify_experiments(version.data, parsed.version, version.envelope, keys, self._threshold)
        if verified.problems:
            raise ExperimentsError(f"{where}: {verified.problems}")
        return parsed

    def succeeds(self, new: ExperimentsFile, current: ExperimentsFile, where: str = "") -> bool:
        """Return whether `new` replaces `current`; raises `ExperimentsError` if its number is too low.

        In development, an edited file always replaces the current version, whatever its number.
        """
        if new.data == current.data:
            return False
        if not self.production:
            return True
        where = where or str(self.path)
        if new.version < current.version:
            raise ExperimentsError(
                f"{where}: version {new.version} is older than version {current.version}, which is in "
                "effect; to go back, write the earlier content as the next version"
            )
        if new.version == current.version:
            raise ExperimentsError(
                f"{where}: version {new.version} is in effect with different content; increase `version`"
            )
        return True
