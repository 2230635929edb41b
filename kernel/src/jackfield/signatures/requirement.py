"""The signatures that a deployment requires, checked when it loads the registry and resumes a session."""

from __future__ import annotations

import logging
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from jackfield.contract.snapshot import Snapshot, SnapshotError, read_registry
from jackfield.signatures.dsse_envelope import SignatureError, envelope_path, read_envelope

if TYPE_CHECKING:
    from jackfield.settings import Settings
    from jackfield.signatures.verification import Verification

_log = logging.getLogger(__name__)

FIX = "deploy the registry with the envelope that `jackfield sign` wrote, and see `jackfield verify`"

Stamp = tuple[int, ...] | None
"""Changes whenever a file is replaced or written; None if there is no file."""


class RequiredSignatures:
    """The trusted keys and the threshold of a deployment, for one registry file.

    In production, a registry without enough valid signatures is rejected. In development, a warning is
    logged.
    """

    def __init__(self, path: Path, keys: tuple[str, ...], threshold: int, *, production: bool) -> None:
        self._path = path
        self._envelope = envelope_path(path)
        self._keys = keys
        self._threshold = threshold
        self._production = production
        self._lock = threading.Lock()
        self._loaded: tuple[bytes, bytes] | None = None
        self._stamps: tuple[Stamp, ...] = ()
        self._expires: datetime | None = None
        self._problem = ""

    @classmethod
    def of(cls, settings: Settings) -> RequiredSignatures | None:
        """Return the signatures that the settings require; None without trusted keys."""
        if not settings.trusted_keys:
            return None
        production = settings.deployment == "production"
        return cls(
            settings.registry, settings.trusted_keys, settings.signature_threshold, production=production
        )

    def load(self) -> Snapshot:
        """Load the registry; the verified bytes are the ones that are parsed."""
        # Taken before reading, so that the next check finds a change that was made in between.
        stamps = self._look()
        data = read_registry(self._path)
        try:
            envelope = read_envelope(self._envelope)
            verification = self._verify(data, envelope)
        except SignatureError as error:
            return self._refuse(str(error), data)
        if verification.problems or verification.snapshot is None:
            return self._refuse(verification.problems, data)
        signers = ", ".join(each.name for each in verification.signers)
        _log.info("registry %s is signed by %s", verification.snapshot.version, signers)
        if self._production:
            self._loaded, self._stamps, self._expires = (data, envelope), stamps, verification.expires
        return verification.snapshot

    def _refuse(self, problem: str, data: bytes) -> Snapshot:
        if self._production:
            raise SignatureError(f"{self._path}: {problem}; {FIX}")
        _log.warning("%s: %s; a production host with these settings would not start", self._path, problem)
        return Snapshot.parse(data, self._path)

    def is_current(self) -> bool:
        """Return whether nothing has changed since the last check, so that it need not be repeated."""
        if self._loaded is None:
            return True
        is_expired = self._expires is not None and datetime.now(UTC) >= self._expires
        return not self._problem and not is_expired and self._stamps == self._look()

    def check_again(self) -> None:
        """Raise `SignatureError` if the files or keys have changed so that the registry is not trusted.

        The loaded registry must be signed by enough trusted keys that still exist. The registry in the file
        may be a different one, for example the next release, but it has to be signed too.
        """
        if self._loaded is None:
            return
        with self._lock:
            stamps = self._look()
            if self._problem or stamps != self._stamps or self._expires is not None:
                self._problem = self._what_is_wrong(*self._loaded)
                self._stamps = stamps
            problem = self._problem
        if problem:
            raise SignatureError(f"{self._path}: {problem}; {FIX}")

    def _what_is_wrong(self, data: bytes, envelope: bytes) -> str:
        try:
            present = read_registry(self._path)
            beside = read_envelope(self._envelope)
            if problem := self._verify(present, beside).problems:
                return problem
            served = self._verify(data, beside if present == data else envelope)
        except SnapshotError as error:
            return str(error)
        if not served.problems:
            self._expires = served.expires
        return served.problems

    def _verify(self, data: bytes, envelope: bytes) -> Verification:
        from jackfield.signatures.public_keys import read_trusted_keys
        from jackfield.signatures.verification import verify

        keys = read_trusted_keys(self._keys, self._threshold)
        return verify(data, self._path, envelope, keys, self._threshold)

    def _look(self) -> tuple[Stamp, ...]:
        files = [path for path in self._keys if not path.lstrip().startswith("-----")]
        return tuple(file_stamp(each) for each in (str(self._path), str(self._envelope), *files))


def load_snapshot(settings: Settings) -> Snapshot:
    """Load a deployment's registry; with trusted keys, verify its signatures."""
    required = RequiredSignatures.of(settings)
    return Snapshot.load(settings.registry) if required is None else required.load()


def file_stamp(path: str) -> Stamp:
    """Return the stamp of a file."""
    try:
        found = os.stat(os.path.expanduser(path))  # noqa: PTH111, PTH116 - runs at every resume
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
