"""One wheel, fetched and unpacked wherever Python runs: by an installer if there is one, else from the index.

Installers come first because they know the user's index, proxy and credentials. Environments made by uv have
neither pip nor, unless it is on the PATH, uv: there the pip that Python carries for `ensurepip` is run,
without installing it. Where a distribution of Python leaves that out, the index is read directly.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

_BLOCK = 1 << 20
_LONGEST_PAGE = 20_000_000
_SECONDS = 60.0
_CHECK_SECONDS = 0.1
_SHOWN = 600

_JSON = "application/vnd.pypi.simple.v1+json"
_INDEX = "https://pypi.org/simple"
_NO_INDEX_VARIABLES = ("PIP_NO_INDEX", "UV_NO_INDEX")
_INDEX_VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[\w.]+) --hash=sha256:(?P<sha256>[0-9a-f]{64})")


Check = Callable[[], None]
"""Is called while a wheel is fetched; raises to stop that."""


def _go_on() -> None: ...


class FetchError(Exception):
    """A wheel cannot be had: what every way to it said."""


class Installer(NamedTuple):
    """A program that installs wheels into a folder."""

    name: str
    command: tuple[str, ...]
    path: str = ""
    """What has to stand in PYTHONPATH."""

    def run(self, *arguments: str, check: Check = _go_on, **variables: str) -> tuple[int, str]:
        """Run it; its status and what it wrote to stderr. OSErrors are for the caller.

        `check` is called while it runs; if that raises, the installer is killed. `variables` are added to
        its environment.
        """
        environ = {**os.environ, **({"PYTHONPATH": self.path} if self.path else {}), **variables}
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            process = subprocess.Popen(  # noqa: S603 - the program is pip or uv, the arguments are ours
                [*self.command, *arguments], stdout=subprocess.DEVNULL, stderr=said, env=environ
            )
            try:
                while True:
                    check()
                    with suppress(subprocess.TimeoutExpired):
                        status = process.wait(_CHECK_SECONDS)
                        break
            finally:
                process.kill()
                process.wait()
            said.seek(0)
            return status, said.read().strip()

    @property
    def works(self) -> bool:
        """Whether it runs at all: a shim on the PATH may lead nowhere."""
        try:
            return self.run("--version")[0] == 0
        except OSError:
            return False


def unpack(requirement: str, folder: Path, check: Check = _go_on) -> None:
    """Unpack the wheel that `NAME==VERSION --hash=sha256:...` names into a folder; its hash is checked.

    `check` is called again and again meanwhile, and may raise to stop it.
    """
    failed = []
    if installer := _installer():
        try:
            _install(installer, requirement, folder, check)
        except FetchError as error:
            failed.append(f"{installer.name}: {error}")
        else:
            return
    try:
        download(requirement, folder, index(), check)
    except FetchError as error:
        failed.append(str(error))
        raise FetchError("\n".join(failed)) from None


@cache
def _installer() -> Installer | None:
    return next((each for each in installers() if each.works), None)


def installers() -> Iterator[Installer]:
    """The installers that may be here, the one of this environment first."""
    if find_spec("pip") is not None:
        yield Installer("pip", (sys.executable, "-m", "pip"))
    beside = Path(sys.executable).with_name("uv")
    for uv in (str(beside) if beside.is_file() else None, shutil.which("uv")):
        if uv:
            yield Installer("uv", (uv,))
    if find_spec("uv") is not None:
        yield Installer("uv", (sys.executable, "-m", "uv"))
    for wheel in _bundled_pip():
        yield Installer("the pip of ensurepip", (sys.executable, "-m", "pip"), str(wheel))


def _bundled_pip() -> Sequence[Path]:
    spec = find_spec("ensurepip")
    if spec is None or spec.origin is None:
        return ()
    return sorted(Path(spec.origin).parent.glob("_bundled/pip-*.whl"))


def _install(installer: Installer, requirement: str, folder: Path, check: Check) -> None:
    listed = folder / "requirement.txt"
    listed.write_text(f"{requirement}\n", "utf-8")
    asked = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    asked += ["--target", str(folder), "-r", str(listed)]
    if installer.name == "uv":
        command = ["pip", "install", "--python", sys.executable]
    else:
        command = ["install", "--disable-pip-version-check"]
    # Its temporary files go with the folder, even if it is killed.
    status, said = installer.run(*command, *asked, check=check, TMPDIR=str(folder))
    if status:
        raise FetchError(said[-_SHOWN:] or f"it ended with status {status}")


def index() -> str:
    """The package index of the environment, else PyPI; FetchError where the environment forbids any."""
    for variable in _NO_INDEX_VARIABLES:
        if os.environ.get(variable, "").strip() not in ("", "0", "false"):
            raise FetchError(f"{variable} is set, so no index is asked")
    named = (os.environ.get(variable, "").strip() for variable in _INDEX_VARIABLES)
    return next(filter(None, named), _INDEX)


def download(requirement: str, folder: Path, index_url: str, check: Check = _go_on) -> None:
    """Fetch a wheel from an index and unpack it, with nothing but the standard library."""
    wanted = _REQUIREMENT.fullmatch(requirement.strip())
    if wanted is None:
        raise FetchError(f"{requirement!r} is not pinned as NAME==VERSION --hash=sha256:...")
    name = re.sub(r"[-_.]+", "-", wanted["name"]).lower()
    page = f"{index_url.rstrip('/')}/{name}/"
    wheel = folder / "part.whl"
    try:
        address = _address(page, wanted["version"], wanted["sha256"])
        with _opened(address) as answer, wheel.open("wb") as stream:
            digest = _copy(answer, stream, check)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise FetchError(f"{page}: {reason}; install pip or uv, or set {_INDEX_VARIABLES[0]}") from None
    if digest != wanted["sha256"]:
        raise FetchError(f"{address} has the SHA-256 {digest}, not {wanted['sha256']}")
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    except zipfile.BadZipFile as error:
        raise FetchError(f"{address} is no wheel: {error}") from None
    wheel.unlink()


def _address(page: str, version: str, sha256: str) -> str:
    """Where the wheel of a version is, as the index says: the one with this hash, else any wheel of it."""
    with _opened(page) as answer:
        content = answer.read(_LONGEST_PAGE)
        media = answer.headers.get_content_type()
    if media == _JSON:
        listed = list(_files(json.loads(content)))
    else:
        links = _Links()
        links.feed(content.decode("utf-8", "replace"))
        listed = [
            (urllib.parse.unquote(urllib.parse.urlsplit(each).path).rpartition("/")[2], each)
            for each in links.found
        ]
    wheels = [url for name, url in listed if name.endswith(".whl") and name.split("-")[1:2] == [version]]
    if not wheels:
        raise ValueError(f"the index has no wheel of version {version}")
    chosen = next((url for url in wheels if sha256 in url), wheels[0])
    return urllib.parse.urldefrag(urllib.parse.urljoin(page, chosen)).url


def _files(document: Any) -> Iterator[tuple[str, str]]:
    """The name and address of each file, with the hash in the address as the HTML form of an index has it."""
    for each in document["files"]:
        yield each["filename"], f"{each['url']}#sha256={each['hashes'].get('sha256', '')}"


class _Links(HTMLParser):
    """The links of an index page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what an anchor leads to."""
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def _opened(url: str) -> Any:
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"{url} is no HTTP address")
    request = urllib.request.Request(url, headers={"Accept": f"{_JSON}, text/html;q=0.5, */*;q=0.1"})  # noqa: S310
    return urllib.request.urlopen(request, timeout=_SECONDS)  # noqa: S310 - the scheme was checked


def _copy(answer: BinaryIO, stream: BinaryIO, check: Check) -> str:
    digest = hashlib.sha256()
    while block := answer.read(_BLOCK):
        check()
        digest.update(block)
        stream.write(block)
    return digest.hexdigest()
