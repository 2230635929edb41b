"""The packages from npm for tests are pinned by hash, and the lock names no registry."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mcp_interop.node_packages import LOCK, WANTED, install, node, read

pytestmark = pytest.mark.skipif(not Path(node()).exists(), reason="Node.js is not installed")


def tarball() -> bytes:
    """Return a package with one file, as npm packs it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        content = json.dumps({"name": "tiny", "version": "1.0.0"}).encode()
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


TARBALL = tarball()
INTEGRITY = f"sha512-{base64.b64encode(hashlib.sha512(TARBALL).digest()).decode()}"


class Registry(BaseHTTPRequestHandler):
    """A registry with one package."""

    def do_GET(self) -> None:
        if self.path.endswith(".tgz"):
            body = TARBALL
        else:
            address = f"http://{self.headers['Host']}/tiny.tgz"
            version = {"name": "tiny", "version": "1.0.0", "dist": {"tarball": address}}
            body = json.dumps({"name": "tiny", "versions": {"1.0.0": version}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_address[1]}/")
        monkeypatch.setenv("npm_config_fetch_retries", "0")
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
        yield
        server.shutdown()


def test_a_package_with_the_pinned_hash_is_installed_and_another_is_refused(
    registry: None, tmp_path: Path
) -> None:
    lock, into = tmp_path / "npm.lock", tmp_path / "installed"
    lock.write_text(f"node_modules/tiny 1.0.0 {INTEGRITY}\n")
    install(lock, into)
    assert (into / "node_modules" / "tiny" / "package.json").exists()
    lock.write_text(f"node_modules/tiny 1.0.0 sha512-{base64.b64encode(bytes(64)).decode()}\n")
    with pytest.raises(RuntimeError, match="EINTEGRITY"):
        install(lock, into)
    assert not (into / "installed").exists()


def test_every_line_of_the_lock_has_a_hash_and_no_address() -> None:
    lines = read(LOCK.read_text("utf-8"))
    assert all(len(base64.b64decode(line.integrity.removeprefix("sha512-"))) == 64 for line in lines)
    assert "://" not in LOCK.read_text("utf-8")
    wanted = tomllib.loads(WANTED.read_text("utf-8"))["packages"]
    assert wanted.items() <= {line.name: line.version for line in lines if not line.parent}.items()
