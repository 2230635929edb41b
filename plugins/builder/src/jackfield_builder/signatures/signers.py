"""Signers: a private key in a file, or a command that does not reveal its key."""

from __future__ import annotations

import base64
import binascii
import os
import shlex
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from jackfield.atomic_files import flush_directory
from jackfield.signatures.dsse_envelope import SignatureError, read_bounded
from jackfield.signatures.public_keys import MAX_KEY_BYTES, PublicKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PASSPHRASE = "JACKFIELD_SIGNING_PASSPHRASE"  # noqa: S105 - the name of a variable
"""The environment variable with the passphrase of private keys."""

COMMAND_SECONDS = 300.0
"""How long a command may take; a person may have to touch a hardware key."""

SIGNATURE_BYTES = 64


class Signer(Protocol):
    """Makes signatures with one key."""

    @property
    def public_key(self) -> PublicKey:
        """The key that verifies the signatures."""

    def sign(self, data: bytes) -> bytes:
        """Return the signature of some bytes; raises `SignatureError`."""


class KeySigner(NamedTuple):
    """Signs with a private key in memory."""

    public_key: PublicKey
    private_key: Ed25519PrivateKey

    def sign(self, data: bytes) -> bytes:
        """Return the signature of some bytes."""
        return self.private_key.sign(data)


class CommandSigner(NamedTuple):
    """Signs with a command that reads the bytes from standard input and prints the signature."""

    public_key: PublicKey
    command: Sequence[str]

    def sign(self, data: bytes) -> bytes:
        """Return the signature that the operator's command prints; it runs without a shell."""
        try:
            done = subprocess.run(  # noqa: S603 - see above
                list(self.command), input=data, stdout=subprocess.PIPE, check=False, timeout=COMMAND_SECONDS
            )
        except OSError as error:
            raise SignatureError(
                f"the sign command cannot be run: {self.command[0]}: {error.strerror}"
            ) from None
        except subprocess.TimeoutExpired:
            raise SignatureError(f"the sign command sent no signature within {COMMAND_SECONDS:g} s") from None
        if done.returncode != 0:
            raise SignatureError(f"the sign command failed with status {done.returncode}")
        return _signature(done.stdout)


def _signature(output: bytes) -> bytes:
    if len(output) == SIGNATURE_BYTES:
        return output
    try:
        decoded = base64.b64decode(b"".join(output[:1024].split()), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if len(decoded) != SIGNATURE_BYTES:
        raise SignatureError(
            f"the sign command printed no signature: expected {SIGNATURE_BYTES} bytes, raw or in base64"
        )
    return decoded


def read_signer(path: Path, passphrase: str | None) -> KeySigner:
    """Read a private key in PEM format; raises a `SignatureError` that says what to do."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        data = read_bounded(path, MAX_KEY_BYTES)
    except FileNotFoundError:
        raise SignatureError(f"{path}: no such key; `jackfield keys new` creates one") from None
    is_encrypted = b"ENCRYPTED" in data
    if is_encrypted and not passphrase:
        raise SignatureError(f"{path}: the key needs a passphrase; set {PASSPHRASE}")
    mode = stat.S_IMODE(path.stat().st_mode)
    if not is_encrypted and mode & 0o077:
        raise SignatureError(
            f"{path}: others can access this key (mode {mode:04o}) and it has no passphrase; "
            f"run `chmod 600 {shlex.quote(str(path))}`"
        )
    try:
        key = load_pem_private_key(data, passphrase.encode() if is_encrypted and passphrase else None)
    except Exception:  # noqa: BLE001 - depending on the content, the library raises various errors
        why = (
            "the passphrase is wrong, or the file is damaged"
            if is_encrypted
            else "not a private key in PEM format"
        )
        raise SignatureError(f"{path}: {why}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(f"{path}: not an Ed25519 key; `jackfield keys new` creates one")
    return KeySigner(PublicKey.of(key.public_key(), path.name.removesuffix(".pem")), key)


def create_key_pair(private: Path, public: Path, passphrase: str | None) -> PublicKey:
    """Create two new files with a key pair; only their owner can read the private key.

    Existing files and links are never replaced, because a lost private key cannot be restored.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        KeySerializationEncryption,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    for path in (private, public):
        if path.exists() or path.is_symlink():
            raise SignatureError(f"{path}: already exists; choose another name")
    key = Ed25519PrivateKey.generate()
    encryption: KeySerializationEncryption = NoEncryption()
    if passphrase:
        encryption = BestAvailableEncryption(passphrase.encode())
    encoded = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    _write_new(private, encoded, 0o600)
    _write_new(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)
    flush_directory(private.parent)
    return PublicKey.of(key.public_key(), private.name.removesuffix(".pem"))


def _write_new(path: Path, content: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        raise SignatureError(f"{path}: already exists; choose another name") from None
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
