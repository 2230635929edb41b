"""`GET /health` and `GET /status`: how the host stands, for probes and for people."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

from jackfield.components import ProviderChoice
from jackfield.protocol import PROTOCOL
from jackfield_sessions.browser_calls import has_browser_calls
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import Operation, Said
from jackfield_host.endpoints.operations import operates
from jackfield_host.endpoints.visit import Visit
from jackfield_host.wire.answers import Health, Status


async def health(visit: Visit) -> Response:
    """Whether the host can take sessions; nothing here tells of anybody."""
    house = visit.house
    standing = await house.readiness.look()
    provider = standing.parts["provider"] and visit.sessions.model_reachable
    status = "unhealthy" if not standing.ready else "healthy" if provider else "degraded"
    answer = {
        "status": status,
        "registry": standing.parts["registry"],
        "store": standing.parts["store"],
        "provider": provider,
        "active_sessions": len(visit.sessions.live),
        "uptime": round(time.monotonic() - house.began, 3),
    }
    return JSONResponse(answer, 200 if standing.ready else 503)


async def status(visit: Visit) -> Response:
    """What somebody who uses the host can know about it."""
    house, sessions, options = visit.house, visit.sessions, visit.house.options
    live, user = sessions.live.values(), visit.identity.user
    registry = sessions.runtime.registry
    return JSONResponse(
        {
            "user": user,
            "provider": sessions.factory.provider,
            "providerChoice": _choice(sessions.factory.provider_choice) if operates(visit) else None,
            "modes": sorted(sessions.transport.modes),
            "browserCalls": has_browser_calls(sessions.transport),
            "registry": registry.version,
            "versions": {
                "host": version("jackfield-host"),
                "kernel": version("jackfield-kernel"),
                "protocol": PROTOCOL,
            },
            "uptime": round(time.monotonic() - house.began, 3),
            "draining": sessions.draining,
            "sessions": {
                "active": len(live),
                "yours": sum(each.session.user == user for each in live),
                "most": options.max_sessions,
                "mostYours": options.sessions_per_user,
            },
            "limits": {
                "messageBytes": options.message_bytes,
                "requestBytes": options.request_bytes,
                "requestsPerMinute": options.requests_per_minute,
                "idleSeconds": options.idle_seconds,
                "sessionSeconds": options.session_seconds,
            },
            "tools": len(registry.tools),
            "withheld": dict(registry.withheld),
        }
    )


def _choice(choice: ProviderChoice) -> dict[str, Any]:
    return {"reason": choice.reason, "detected": choice.detected, "hints": list(choice.hints)}


HEALTH = Operation(
    "GET",
    "/health",
    "Whether the host can take sessions.",
    health,
    answers={
        200: (Said("It can; `degraded` where the model could not be reached when last tried.", Health),),
        503: (Said("It cannot, or is about to stop.", Health),),
    },
    enter=Visit.screened,
)

STATUS = Operation(
    "GET",
    "/status",
    "How the host stands, with versions, sessions, limits and withheld tools.",
    status,
    answers={200: (Said("How it stands.", Status),)},
)
