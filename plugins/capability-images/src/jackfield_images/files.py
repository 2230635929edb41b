"""Storage for image files: a folder on this machine, or an object store that all hosts share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from jackfield.atomic_files import write_atomically

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = ("s3", "gs", "az")
"""URL schemes of object stores: Amazon S3 and everything that speaks its protocol, Google, Azure."""

CONNECT_SECONDS = "5s"
REQUEST_SECONDS = "20s"

RETRIES = 2
"""How often a request to an object store is retried after a temporary failure."""

RETRY_SECONDS = 10.0

PROBE = "write-test"
"""The name of the object that is written to check that images can be stored."""


class FilesUnavailableError(OSError):
    """The object store cannot be reached, or rejects this deployment's requests."""


class ImageFiles(Protocol):
    """Files by name. Every method blocks, and raises `OSError` if it fails."""

    def prepare(self) -> None:
        """Check that files can be written, before an image is paid for."""

    def write(self, name: str, content: bytes, media_type: str) -> None:
        """Write a file; it exists completely or not at all."""

    def read(self, name: str, limit: int) -> bytes:
        """Return a file of at most `limit` bytes; raises `FileNotFoundError` if there is none."""


class ImageFolder:
    """The files of one folder, private to its owner; any number of processes may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self) -> None:
        """Create the folder for its owner only."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise PermissionError(f"{self._folder} cannot be written to")

    def write(self, name: str, content: bytes, media_type: str) -> None:  # noqa: ARG002 - the protocol's
        """Write a file, and flush it to disk."""
        write_atomically(self._folder / name, content)

    def read(self, name: str, limit: int) -> bytes:
        """Return a file."""
        # Links are not followed: a link in the folder must not expose another file.
        descriptor = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            if os.fstat(descriptor).st_size > limit:
                raise FileNotFoundError(f"{name} is larger than {limit} bytes")
            return file.read()


class ImageBucket:
    """The objects below a URL; the credentials come from the environment."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: ObjectStore | None = None

    def prepare(self) -> None:
        """Write a test object."""
        self.write(PROBE, b"", "application/octet-stream")

    def write(self, name: str, content: bytes, media_type: str) -> None:
        """Write an object."""
        import obstore

        self._request(
            lambda store: obstore.put(store, name, content, attributes={"Content-Type": media_type})
        )

    def read(self, name: str, limit: int) -> bytes:
        """Return an object."""
        import obstore

        def get(store: ObjectStore) -> bytes:
            found = obstore.get(store, name)
            if found.meta["size"] > limit:
                raise FileNotFoundError(f"{name} is larger than {limit} bytes")
            return bytes(found.bytes())

        content: bytes = self._request(get)
        return content

    def _request(self, send: Any) -> Any:
        from obstore.exceptions import BaseError, NotFoundError

        try:
            return send(self._store())
        except NotFoundError as error:
            # A missing bucket causes the same error, but then no image can have been stored in it.
            raise FileNotFoundError(_first_line(error)) from None
        except BaseError as error:
            raise FilesUnavailableError(f"{self._url}: {_first_line(error)}") from None

    def _store(self) -> ObjectStore:
        """Return the object store; the first use opens it, because its library takes a moment to import."""
        if self._opened is None:
            from datetime import timedelta

            from obstore.store import from_url

            self._opened = from_url(
                self._url,
                client_options={
                    "connect_timeout": CONNECT_SECONDS,
                    "timeout": REQUEST_SECONDS,
                    # These options replace what the library reads from the environment.
                    "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true"),
                },
                retry_config={
                    "max_retries": RETRIES,
                    "retry_timeout": timedelta(seconds=RETRY_SECONDS),
                },
            )
        return self._opened


def is_object_store(url: str) -> bool:
    """Return whether a URL names an object store and contains nothing secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    return parts.scheme in SCHEMES and bool(parts.netloc) and plain


def _first_line(error: Exception) -> str:
    """Return the line that says what went wrong; the others contain the server's whole response."""
    return str(error).partition("\n")[0][:300]
