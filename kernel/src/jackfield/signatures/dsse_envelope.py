"""The DSSE envelope: a payload and the signatures over it, in a JSON file beside the signed one."""

from __future__ import annotations

import base64
import binascii
import errno
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from jackfield import strict_json
from jackfield.contract.snapshot import SnapshotError

PAYLOAD_TYPE = "application/vnd.in-toto+json"

MAX_ENVELOPE_BYTES = 16 * 1024 * 1024

MAX_SIGNATURES = 64


class SignatureError(SnapshotError):
    """A registry's signatures are not valid, or cannot be checked; the message says what to do."""


class UnsignedError(SignatureError):
    """There is no envelope beside the registry."""


class Signature(NamedTuple):
    """One signature of an envelope."""

    key_id: str
    """The id of the key, which is only a hint; empty if the signer gave none."""
    value: bytes


class DsseEnvelope(NamedTuple):
    """A payload with its signatures; nothing in it has been verified."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]

    @property
    def signed_bytes(self) -> bytes:
        """The bytes that a signature covers."""
        return pre_authentication_encoding(self.payload_type, self.payload)

    @classmethod
    def parse(cls, data: bytes, where: str) -> DsseEnvelope:
        """Parse an envelope; raises `SignatureError` if the data is anything else."""
        document = parse_object(data, where)
        payload_type, signatures = document.get("payloadType"), document.get("signatures")
        if payload_type != PAYLOAD_TYPE:
            raise SignatureError(
                f"{where}: the payload type is not {PAYLOAD_TYPE}, but {_shown(payload_type)}"
            )
        if not isinstance(signatures, list) or not signatures:
            raise SignatureError(f"{where}: the envelope has no signatures")
        if len(signatures) > MAX_SIGNATURES:
            raise SignatureError(f"{where}: the envelope has more than {MAX_SIGNATURES} signatures")
        payload = _decode(document.get("payload"), f"{where}: payload")
        return cls(payload_type, payload, tuple(_signature(each, where) for each in signatures))

    def dumps(self) -> bytes:
        """Return the JSON of the envelope."""
        signatures = [
            {"keyid": each.key_id, "sig": base64.b64encode(each.value).decode()} for each in self.signatures
        ]
        document = {
            "payload": base64.b64encode(self.payload).decode(),
            "payloadType": self.payload_type,
            "signatures": signatures,
        }
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """Return DSSE's encoding of a payload and its type, which is what keys sign."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def envelope_path(signed: Path) -> Path:
    """Return the path of a file's envelope."""
    return signed.with_name(f"{signed.name}.dsse")


def read_envelope(path: Path, *, fix: str = "the registry is not signed: run `jackfield sign`") -> bytes:
    """Read an envelope file; raises `UnsignedError` if there is none."""
    try:
        return read_bounded(path, MAX_ENVELOPE_BYTES)
    except FileNotFoundError:
        what, _, command = fix.partition(": ")
        raise UnsignedError(f"{what}: {path} does not exist; {command}") from None


def read_bounded(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Raises `FileNotFoundError` if there is none, and `SignatureError` for any other problem. Links are
    followed, because mounted configuration consists of links, and because the content is verified. A named
    pipe or a device cannot block a host's startup.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        # A broken or circular link is treated as an attack, not as a missing file.
        if error.errno == errno.ENOENT and not path.is_symlink():
            raise
        raise SignatureError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SignatureError(f"{path}: not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise SignatureError(f"{path}: cannot be read ({error.strerror})") from None
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise SignatureError(f"{path}: larger than {limit:,} bytes")
    return data


def parse_object(data: bytes, where: str) -> dict[str, Any]:
    """Parse a JSON object without duplicate keys or other ambiguities; raises `SignatureError`."""
    try:
        document = strict_json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise SignatureError(f"{where}: not UTF-8") from None
    except strict_json.StrictJsonError as error:
        raise SignatureError(f"{where}: not valid JSON ({_first(error)})") from None
    if not isinstance(document, dict):
        raise SignatureError(f"{where}: not a JSON object")
    return document


def _first(error: strict_json.StrictJsonError) -> str:
    fault = error.faults[0]
    return f"{fault.where[:80]}: {fault.message[:120]}"


def _signature(value: Any, where: str) -> Signature:
    if not isinstance(value, dict) or not isinstance(value.get("keyid", ""), str):
        raise SignatureError(f"{where}: a signature is not an object with `sig` and, optionally, `keyid`")
    return Signature(value.get("keyid", "")[:256], _decode(value.get("sig"), f"{where}: signature"))


def _decode(text: Any, where: str) -> bytes:
    """Decode canonical base64, standard or URL-safe; other encodings of the same bytes are rejected."""
    if not isinstance(text, str) or not text.isascii():
        raise SignatureError(f"{where}: not base64")
    alphabet = b"-_" if "-" in text or "_" in text else b"+/"
    try:
        decoded = base64.b64decode(text, alphabet, validate=True)
    except (binascii.Error, ValueError):
        raise SignatureError(f"{where}: not base64") from None
    if base64.b64encode(decoded, alphabet).decode() != text:
        raise SignatureError(f"{where}: not canonical base64")
    return decoded


def _shown(value: Any) -> str:
    return repr(value)[:80]
