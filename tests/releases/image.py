"""Follows deploy/Containerfile without a container engine, and tries the image: `nox -s image`.

Debian's Python replaces the base image. Everything else comes from the Containerfile: each stage is a root
file system in which its instructions are carried out, and the image runs in new namespaces, without a
network, with a read-only root file system. Build steps use the network and the registries of this machine.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import time
from pathlib import Path

from releases.containerfile import CONTAINERFILE, ContainerfileError, Instruction, Stage, stages, stop_timeout
from releases.members import ROOT
from releases.namespaces import (
    NAMESPACES,
    Container,
    Image,
    ImageError,
    Volumes,
    container,
    finish,
    missing_programs,
)

SUITE = "trixie"
PACKAGES = ("ca-certificates", "netbase", "python-is-python3", "python3-pip", "python3-venv", "tzdata")
"""What stands in for the base image python:*-slim."""
CONFIGURES_DOWNLOADS = re.compile(r"(PIP|UV|SSL)_\w+|REQUESTS_CA_BUNDLE|(http|https|no)_proxy", re.IGNORECASE)
"""Variables that build steps get from this machine, so that they reach its registries."""
NETWORK_FILES = ("/etc/hosts", "/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt")
"""Files that build steps get from this machine; they do not reach the image."""
CLIENT = Path(__file__).with_name("image_client.py")
SETTINGS = "/etc/jackfield/jackfield.toml"


def main(folder: Path) -> int:
    """Build the image in a folder and try it."""
    if os.geteuid() != 0:
        sys.exit("nox -s image needs root: it mounts, and changes the root folder. Run it as root.")
    if packages := missing_programs():
        sys.exit(f"nox -s image needs programs that are missing: apt-get install {packages}")
    try:
        text = CONTAINERFILE.read_text("utf-8")
        image, last = build(stages(text), folder)
        try_image(image, last, stop_timeout(text), folder / "run")
    except (ImageError, ContainerfileError) as error:
        sys.exit(str(error))
    return 0


def build(all_stages: list[Stage], folder: Path) -> tuple[Image, Stage]:
    """Carry out every stage, each in a new root file system, and return the last one."""
    base = _base(folder)
    images: dict[str, Image] = {}
    for number, stage in enumerate(all_stages, 1):
        root = folder / f"stage-{number}"
        shutil.rmtree(root, ignore_errors=True)
        finish(["cp", "-a", str(base), str(root)], seconds=600)
        is_last = number == len(all_stages)
        image = images[stage.name] = Image(root)
        if not is_last:
            _lend_network(root)
        for instruction in stage.instructions:
            started = time.monotonic()
            _carry_out(instruction, image, images, downloads=not is_last)
            _print(f"{instruction.word} {instruction.rest[:90]} ({time.monotonic() - started:.0f} s)")
    return image, stage


def _base(folder: Path) -> Path:
    """Return a Debian root file system with Python; it is kept for the next run."""
    root, ready = folder / f"base-{SUITE}", folder / f"base-{SUITE}.packages"
    wanted = " ".join(PACKAGES)
    if not ready.exists() or ready.read_text("utf-8") != wanted:
        _print(f"installing Debian {SUITE} into {root}")
        ready.unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        options = ("--variant=minbase", f"--include={','.join(PACKAGES)}")
        # debootstrap mounts /proc in the new root.
        isolated = ["unshare", *NAMESPACES, "--fork", "--kill-child"]
        finish([*isolated, "debootstrap", *options, SUITE, str(root)], seconds=1800)
        ready.write_text(wanted, "utf-8")
    return root


def _lend_network(root: Path) -> None:
    for name in NETWORK_FILES:
        if Path(name).is_file():
            shutil.copyfile(name, root / name.lstrip("/"))


def _carry_out(instruction: Instruction, image: Image, images: dict[str, Image], *, downloads: bool) -> None:
    rest = instruction.rest
    match instruction.word:
        case "RUN":
            variables = {**image.variables, **(_download_variables() if downloads else {})}
            # Debian's pip refuses to install beside apt; the one of the base image does not.
            variables["PIP_BREAK_SYSTEM_PACKAGES"] = "1"
            Image(image.root, image.user, image.cwd, variables).run(["/bin/sh", "-c", rest])
        case "COPY":
            sources, destination = instruction.copy_paths
            above = images[instruction.copy_from].root if instruction.copy_from else ROOT
            for source in sources:
                _copy(above / source.lstrip("/"), image.path(destination), into=destination.endswith("/"))
        case "ENV":
            for name, value in instruction.variables(dict(image.variables)):
                image.variables[name] = value
        case "USER":
            image.user = rest
        case "WORKDIR":
            image.cwd = str(Path(image.cwd) / rest)
            image.path(".").mkdir(parents=True, exist_ok=True)


def _download_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if CONFIGURES_DOWNLOADS.fullmatch(name)}


def _copy(source: Path, destination: Path, *, into: bool) -> None:
    if source.is_dir():
        shutil.copytree(source, destination, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, destination / source.name if into else destination)


def try_image(image: Image, last: Stage, stop_seconds: float, folder: Path) -> None:
    """Create the store, serve, talk to the host, stop and resume, as the documentation says."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    volume, settings = last.last("VOLUME"), folder / "jackfield.toml"
    # An engine fills a new volume with what the image has there, and keeps its owner.
    finish(["cp", "-a", str(image.path(volume)), str(folder / "volume")], seconds=60)
    settings.touch()
    volumes = Volumes({volume: folder / "volume"}, {SETTINGS: settings})

    def once(*command: str) -> tuple[int, str]:
        with container(image, list(command), volumes) as ran:
            return ran.wait(120), ran.output

    def expect(status: int, text: str, *command: str) -> str:
        found, output = once(*command)
        if found != status or text not in output:
            raise ImageError(f"{shlex.join(command)} exited with {found}, not {status}: {output}")
        _print(f"{shlex.join(command)}: {output.strip().splitlines()[-1][:110]}")
        return output

    expect(1, "token", *last.command)
    made = expect(0, "digest", "jackfield", "key", "phone", "--user", "ada")
    key, settings_lines = _key_and_lines(made)
    settings.write_text(settings_lines, "utf-8")
    expect(1, "store create", *last.command)
    expect(0, "", "jackfield", "store", "create")
    session: list[str] = []
    for round_ in ("first start", "restart"):
        with container(image, last.command, volumes) as host:
            session = _use(host, last, key, session)
            seconds = _stop(host, last.last("STOPSIGNAL"), stop_seconds)
        _print(f"{round_}: {last.last('STOPSIGNAL')} ended the host after {seconds:.1f} s, with status 0")
    owners = {path.stat().st_uid for path in (folder / "volume").rglob("*")}
    if owners != {image.ids()[0]}:
        raise ImageError(f"files in the volume belong to the users {owners}")


def _key_and_lines(output: str) -> tuple[str, str]:
    """Return the key that `jackfield key` printed, and its lines for the settings file."""
    found = re.search(r"^\s*(jf_\S+)\s*$", output, re.MULTILINE)
    lines = re.search(r"^\[host\.keys\..*?(?=\n\n|\Z)", output, re.MULTILINE | re.DOTALL)
    if not found or not lines:
        raise ImageError(f"jackfield key printed something else: {output}")
    return found[1], lines[0] + "\n"


def _use(host: Container, last: Stage, key: str, session: list[str]) -> list[str]:
    """Wait until the host is healthy, then talk to it, also in this session; return what resumes it."""
    check, started = last.health_check, time.monotonic()
    while True:
        try:
            host.execute(check.command, seconds=check.timeout)
            break
        except ImageError as error:
            if not host.running or time.monotonic() - started > check.unhealthy_after:
                raise ImageError(f"the container is not healthy: {error}\n{host.output}") from error
            time.sleep(0.5)
    _print(f"healthy after {time.monotonic() - started:.1f} s")
    url = f"http://127.0.0.1:{last.last('EXPOSE')}"
    talk = ["env", f"KEY={key}", "python", "-", url, *session]
    found = host.execute(talk, seconds=120, stdin=CLIENT.read_text("utf-8"))
    _print(f"the console page, POST /execute and a text session work{' (resumed)' if session else ''}")
    return found.split()


def _stop(host: Container, signal: str, seconds: float) -> float:
    started = time.monotonic()
    host.send_signal(signal)
    if status := host.wait(seconds):
        raise ImageError(f"{signal} ended the host with status {status}\n{host.output}")
    return time.monotonic() - started


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
