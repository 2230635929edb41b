"""nginx before the hosts, with the configuration from deploy/compose and addresses of this machine."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
from faults.deployment import ANSWER_SECONDS
from jackfield_testkit.postgres import free_port

SHIPPED = Path(__file__).parents[2] / "deploy" / "compose" / "nginx.conf"

START_SECONDS = 60.0

PROGRAM = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")

_SERVERS = re.compile(r"(?: +server host-\d+:8765(.*);\n)+")


class Proxy:
    """A real nginx on loopback; it takes the place of a host in requests."""

    number = 0
    """Its number among the hosts."""
    address = "127.0.0.1"

    def __init__(self, folder: Path, hosts: Sequence[int], headers: Mapping[str, str]) -> None:
        """`hosts` are the ports of the hosts."""
        self._folder = folder
        self.port = free_port()
        self.headers = dict(headers)
        self._hosts = hosts
        self._process: asyncio.subprocess.Process | None = None
        self.http = httpx.AsyncClient(
            base_url=self.url,
            headers=self.headers,
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=5.0),
            trust_env=False,
        )

    @property
    def url(self) -> str:
        """The address of the cluster."""
        return f"http://127.0.0.1:{self.port}"

    def configuration(self) -> Path:
        """Write the configuration; return its path."""
        self._folder.mkdir(parents=True, exist_ok=True)
        site = SHIPPED.read_text("utf-8").replace("listen 8080;", f"listen 127.0.0.1:{self.port};")
        site = site.replace("/dev/stdout", str(self._folder / "access.log"))
        lines = (f"    server 127.0.0.1:{port}\\1;\n" for port in self._hosts)
        site, count = _SERVERS.subn("".join(lines), site)
        if count != 1:
            raise ValueError(f"{SHIPPED} lists no hosts")
        (self._folder / "site.conf").write_text(site, "utf-8")
        kept = "client_body proxy fastcgi uwsgi scgi"
        paths = "\n".join(f"{each}_temp_path {self._folder}/{each};" for each in kept.split())
        main = self._folder / "nginx.conf"
        main.write_text(
            f"daemon off;\npid {self._folder}/nginx.pid;\nerror_log {self._folder}/error.log;\n"
            f"worker_processes 1;\nevents {{ worker_connections 2048; }}\n"
            f"http {{\n{paths}\ninclude {self._folder}/site.conf;\n}}\n",
            "utf-8",
        )
        return main

    async def start(self) -> None:
        """Start nginx, and wait until it accepts connections."""
        if PROGRAM is None:
            raise RuntimeError("nginx is not installed (Debian: apt-get install nginx-light)")
        file = self.configuration()
        self._process = await asyncio.create_subprocess_exec(
            PROGRAM, "-e", str(self._folder / "early.log"), "-c", str(file)
        )
        async with asyncio.timeout(START_SECONDS):
            while not (self._folder / "nginx.pid").exists():
                if self._process.returncode is not None:
                    raise RuntimeError(f"nginx did not start:\n{(self._folder / 'early.log').read_text()}")
                await asyncio.sleep(0.02)

    async def close(self) -> None:
        """Stop nginx."""
        await self.http.aclose()
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()
