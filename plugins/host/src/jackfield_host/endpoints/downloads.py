"""`/downloads`: what an operator can have the host fetch to get a better provider."""

from __future__ import annotations

from typing import Any

from jackfield.offers import Download
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import Operation, Said
from jackfield_host.endpoints.operations import OPERATORS_ONLY, check_operates
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError
from jackfield_host.operations.downloads import DownloadBusyError, Downloads
from jackfield_host.wire.bodies import DownloadBody
from jackfield_host.wire.operations import DownloadList, DownloadProgress


async def downloads(visit: Visit) -> Response:
    """What can be downloaded, and how far it is."""
    check_operates(visit)
    held = visit.house.downloads
    return JSONResponse({"downloads": [_progress(held, each) for each in held.offered]})


async def start(visit: Visit) -> Response:
    """Start a download."""
    check_operates(visit)
    body = await visit.body(DownloadBody)
    held = visit.house.downloads
    download = held.find(body.name)
    if download is None:
        raise HttpError(
            404,
            "unknown_download",
            f"There is no download {body.name!r}.",
            suggestion="GET /downloads lists them.",
        )
    try:
        held.start(download)
    except DownloadBusyError:
        raise HttpError(
            409,
            "download_running",
            "Another download is running.",
            suggestion="Wait for it to end: GET /downloads says how far it is.",
        ) from None
    return JSONResponse(_progress(held, download), 202)


def _progress(held: Downloads, download: Download) -> dict[str, Any]:
    state, attempt = held.state(download), held.attempt(download)
    return {
        "name": download.name,
        "label": download.label,
        "hint": held.hint(download),
        "state": state,
        "sizeBytes": download.size_bytes,
        "receivedBytes": download.size_bytes if state == "complete" else attempt.received,
        "error": attempt.error if state == "failed" else None,
        "needsRestart": held.needs_restart(download),
    }


DOWNLOADS = Operation(
    "GET",
    "/downloads",
    "What the host can download to get a better provider, and how far it is.",
    downloads,
    answers={200: (Said("The downloads.", DownloadList),)},
    fails=OPERATORS_ONLY,
)

START_DOWNLOAD = Operation(
    "POST",
    "/downloads/start",
    "Start a download. Starting one that runs or is complete changes nothing.",
    start,
    body=DownloadBody,
    answers={202: (Said("How it stands; `GET /downloads` follows it.", DownloadProgress),)},
    fails={
        400: "The body is wrong; the message says where.",
        404: "There is no such download.",
        409: "Another download is running.",
        **OPERATORS_ONLY,
    },
)
