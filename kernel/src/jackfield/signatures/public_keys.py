"""Public Ed25519 keys: read from PEM, identified by the hash of their encoding."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jackfield.signatures.dsse_envelope import SignatureError, read_bounded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MAX_KEY_BYTES = 64 * 1024

PEM_START = "-----BEGIN "


class PublicKey(NamedTuple):
    """A public key and the name that messages use for it."""

    key_id: str
    """The SHA-256 of the key's DER encoding (SubjectPublicKeyInfo), in hex."""
    name: str
    key: Ed25519PublicKey

    @classmethod
    def of(cls, key: Ed25519PublicKey, name: str = "") -> PublicKey:
        """Wrap a key of the `cryptography` package; without a name, messages use the start of the id."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        encoded = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        key_id = hashlib.sha256(encoded).hexdigest()
        return cls(key_id, name or short_id(key_id), key)

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Return whether this key made the signature."""
        from cryptography.exceptions import InvalidSignature

        try:
            self.key.verify(signature, data)
        except InvalidSignature:
            return False
        return True


def short_id(key_id: str) -> str:
    """Return the start of a key id, for messages; all but letters and digits are replaced by `?`."""
    start = "".join(each if each.isascii() and each.isalnum() else "?" for each in key_id[:16])
    return f"key {start or 'without an id'}"


def read_public_keys(sources: Iterable[str]) -> tuple[PublicKey, ...]:
    """Read keys, each from PEM text or from a file; a key that is given twice counts once."""
    keys = {key.key_id: key for key in map(read_public_key, sources)}
    return tuple(keys.values())


def read_trusted_keys(sources: Iterable[str], threshold: int) -> tuple[PublicKey, ...]:
    """Read the trusted keys of a deployment; raises `SignatureError` if they cannot meet the threshold."""
    keys = read_public_keys(sources)
    if len(keys) < threshold:
        raise SignatureError(
            f"signature_threshold is {threshold}, but trusted_keys has {len(keys)} different keys"
        )
    return keys


def read_public_key(source: str) -> PublicKey:
    """Read one key from PEM text or from a file; raises `SignatureError`."""
    if source.lstrip().startswith(PEM_START):
        return _parse(source.strip().encode(), "a trusted key in the settings", "")
    path = Path(source).expanduser()
    try:
        data = read_bounded(path, MAX_KEY_BYTES)
    except FileNotFoundError:
        raise SignatureError(f"{path}: the file of a trusted key does not exist") from None
    name = path.name.removesuffix(".pem").removesuffix(".pub")
    return _parse(data, str(path), name if name.isprintable() else "")


def _parse(data: bytes, where: str, name: str) -> PublicKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise SignatureError(
            "checking signatures needs the package `cryptography`; install jackfield-kernel[signing]"
        ) from None
    if b"PRIVATE KEY" in data:
        raise SignatureError(f"{where}: this is a private key; use the public one (`NAME.pub.pem`)")
    try:
        key = load_pem_public_key(data)
    except Exception:  # noqa: BLE001 - depending on the content, the library raises various errors
        raise SignatureError(f"{where}: not a public key in PEM format") from None
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(f"{where}: not an Ed25519 key; `jackfield keys new` creates one")
    return PublicKey.of(key, name)
