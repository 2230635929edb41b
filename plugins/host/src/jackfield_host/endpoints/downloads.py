"""`/downloads`: lets an operator download files that give the host a better provider.

Downloads run one at a time, in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jackfield.components import ProviderDownload
from jackfield.offers import Download, DownloadError, DownloadStopped
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import OPERATORS_ONLY, Endpoint, RequestContext, ResponseForm
from jackfield_host.errors import HttpError

_log = logging.getLogger(__name__)

STOP_SECONDS = 3.0
"""How long a stopping host waits for a download to clean up."""

DownloadState = Literal["available", "running", "failed", "complete"]


class DownloadBusyError(Exception):
    """Another download is running."""


@dataclass
class DownloadAttempt:
    """The last attempt at one download."""

    received: int = 0
    error: str = ""
    running: bool = True


class Downloads:
    """The downloads that the host offers, and their progress."""

    def __init__(self, offered: Sequence[ProviderDownload], provider: str) -> None:
        """`provider` is the provider in use; downloads for another one take effect after a restart."""
        self._offered = {each.download.name: each for each in offered}
        self._provider = provider
        self._attempts: dict[str, DownloadAttempt] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def offered(self) -> Sequence[Download]:
        """All downloads, in the order of preference."""
        return [each.download for each in self._offered.values()]

    def find(self, name: str) -> Download | None:
        """Return the download with this name."""
        found = self._offered.get(name)
        return found.download if found else None

    def state(self, download: Download) -> DownloadState:
        """Return the state of a download; it is also complete if another program has completed it."""
        attempt = self._attempts.get(download.name)
        if attempt is not None and attempt.running:
            return "running"
        if download.is_complete():
            return "complete"
        return "failed" if attempt is not None and attempt.error else "available"

    def attempt(self, download: Download) -> DownloadAttempt:
        """Return the last attempt at a download."""
        return self._attempts.get(download.name) or DownloadAttempt(running=False)

    def hint(self, download: Download) -> str:
        """Return the provider's hint that a download makes unnecessary."""
        return self._offered[download.name].hint

    def needs_restart(self, download: Download) -> bool:
        """Return whether the host must be restarted to use a download."""
        return self._offered[download.name].provider != self._provider

    def start(self, download: Download) -> None:
        """Start a download unless it is running or complete; raise `DownloadBusyError` if another runs."""
        if self.state(download) in ("running", "complete") or self._stopping.is_set():
            return
        if any(each.running for each in self._attempts.values()):
            raise DownloadBusyError
        attempt = self._attempts[download.name] = DownloadAttempt()
        # A daemon thread, so that a download that does not stop does not keep the process alive.
        self._thread = threading.Thread(
            target=self._run, args=(download, attempt), name=f"download-{download.name}", daemon=True
        )
        _log.info("downloading %s", download.label)
        self._thread.start()

    async def close(self) -> None:
        """Stop the running download."""
        self._stopping.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, STOP_SECONDS)

    def _run(self, download: Download, attempt: DownloadAttempt) -> None:
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
            attempt.error = f"unexpected {type(error).__name__}; see the host's log"
            _log.exception("the download of %s failed", download.label)
        finally:
            attempt.running = False


async def downloads(context: RequestContext) -> Response:
    """List the downloads with their progress."""
    context.require_operator()
    found = context.host.downloads
    return JSONResponse({"downloads": [_progress(found, each) for each in found.offered]})


async def start(context: RequestContext) -> Response:
    """Start a download."""
    from jackfield_host.request_models import DownloadBody

    context.require_operator()
    body = await context.body(DownloadBody)
    found = context.host.downloads
    download = found.find(body.name)
    if download is None:
        raise HttpError(
            404,
            "unknown_download",
            f"There is no download {body.name!r}.",
            suggestion="GET /downloads lists the downloads.",
        )
    try:
        found.start(download)
    except DownloadBusyError:
        raise HttpError(
            409,
            "download_running",
            "Another download is running.",
            suggestion="Wait until it is complete: GET /downloads shows its progress.",
        ) from None
    return JSONResponse(_progress(found, download), 202)


def _progress(found: Downloads, download: Download) -> dict[str, Any]:
    state, attempt = found.state(download), found.attempt(download)
    return {
        "name": download.name,
        "label": download.label,
        "hint": found.hint(download),
        "state": state,
        "sizeBytes": download.size_bytes,
        "receivedBytes": download.size_bytes if state == "complete" else attempt.received,
        "error": attempt.error if state == "failed" else None,
        "needsRestart": found.needs_restart(download),
    }


DOWNLOADS = Endpoint(
    "GET",
    "/downloads",
    "The downloads that give the host a better provider, with their progress.",
    downloads,
    responses={200: (ResponseForm("The downloads.", "ProviderDownloadsResponse"),)},
    errors=OPERATORS_ONLY,
)

START_DOWNLOAD = Endpoint(
    "POST",
    "/downloads/start",
    "Start a download. Starting one that is running or complete has no effect.",
    start,
    body="DownloadBody",
    responses={
        202: (ResponseForm("The state of the download; `GET /downloads` follows it.", "DownloadProgress"),)
    },
    errors={
        400: "The body is invalid; the message says where.",
        404: "There is no such download.",
        409: "Another download is running.",
        **OPERATORS_ONLY,
    },
)
