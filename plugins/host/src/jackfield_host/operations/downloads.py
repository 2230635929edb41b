"""Downloads that give the host a better provider: one at a time, in a thread, with progress."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jackfield.components import ProviderDownload
from jackfield.offers import Download, DownloadError, DownloadStopped

_log = logging.getLogger(__name__)

STOP_SECONDS = 3.0
"""How long a host that stops waits for a download to clean up."""

State = Literal["available", "running", "failed", "complete"]


class DownloadBusyError(Exception):
    """Another download is running."""


@dataclass
class Attempt:
    """The last attempt at one download."""

    received: int = 0
    error: str = ""
    running: bool = True


class Downloads:
    """What can be downloaded here, and how far it is."""

    def __init__(self, offered: Sequence[ProviderDownload], provider: str) -> None:
        """`provider` is the one that answers; what another one needs takes effect with a restart."""
        self._offered = {each.download.name: each for each in offered}
        self._provider = provider
        self._attempts: dict[str, Attempt] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def offered(self) -> Sequence[Download]:
        """All of them, in the order of preference."""
        return [each.download for each in self._offered.values()]

    def find(self, name: str) -> Download | None:
        """The download with this name."""
        found = self._offered.get(name)
        return found.download if found else None

    def state(self, download: Download) -> State:
        """How it stands; one that another program has completed is complete too."""
        attempt = self._attempts.get(download.name)
        if attempt is not None and attempt.running:
            return "running"
        if download.is_complete():
            return "complete"
        return "failed" if attempt is not None and attempt.error else "available"

    def attempt(self, download: Download) -> Attempt:
        """How far the last attempt got, and why it failed."""
        return self._attempts.get(download.name) or Attempt(running=False)

    def hint(self, download: Download) -> str:
        """The hint that it makes unnecessary."""
        return self._offered[download.name].hint

    def needs_restart(self, download: Download) -> bool:
        """Whether the host has to be restarted to use it."""
        return self._offered[download.name].provider != self._provider

    def start(self, download: Download) -> None:
        """Start it, unless it runs or is complete; `DownloadBusyError` while another one runs."""
        if self.state(download) in ("running", "complete") or self._stopping.is_set():
            return
        if any(each.running for each in self._attempts.values()):
            raise DownloadBusyError
        attempt = self._attempts[download.name] = Attempt()
        # A daemon, so that a download that does not heed its end does not keep the process alive.
        self._thread = threading.Thread(
            target=self._run, args=(download, attempt), name=f"download-{download.name}", daemon=True
        )
        _log.info("downloading %s", download.label)
        self._thread.start()

    async def close(self) -> None:
        """Stop what runs."""
        self._stopping.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, STOP_SECONDS)

    def _run(self, download: Download, attempt: Attempt) -> None:
        def progress(added: int) -> None:
            if self._stopping.is_set():
                raise DownloadStopped
            attempt.received += added

        try:
            download.run(progress)
            _log.info("downloaded %s", download.label)
        except DownloadStopped:
            _log.info("the download of %s was stopped", download.label)
        except DownloadError as error:
            attempt.error = str(error)
            _log.warning("the download of %s failed: %s", download.label, error)
        except Exception as error:  # noqa: BLE001 - a plugin is third-party code
            attempt.error = f"it failed with {type(error).__name__}; the log of the host says more"
            _log.exception("the download of %s failed", download.label)
        finally:
            attempt.running = False
