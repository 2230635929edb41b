"""`GET /health`, `/health/live`, `/health/ready` and `/status`: for probes, and for people."""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from jackfield.components import ProviderChoice
from jackfield.protocol import PROTOCOL
from jackfield.store import StoreUnavailableError
from jackfield_sessions.browser_calls import has_browser_calls
from jackfield_sessions.manager import SessionManager
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import Endpoint, RequestContext, ResponseForm
from jackfield_host.startup import PROBE

_log = logging.getLogger(__name__)

CACHE_SECONDS = 1.0
"""How long a result is reused, so that frequent probes do not load the store."""

STORE_TIMEOUT_SECONDS = 5.0
"""A store that takes longer than this to write one byte cannot serve sessions."""


class HealthStatus(NamedTuple):
    """The public status of a host, without internal details."""

    ready: bool
    draining: bool
    parts: dict[str, bool]
    """True for each part that works: `registry`, `provider`, `store`."""


class HealthCheck:
    """Checks what sessions need. Registry and provider were checked at startup and do not change."""

    def __init__(self, sessions: SessionManager) -> None:
        self._sessions = sessions
        self._lock = asyncio.Lock()
        self._checked_at = float("-inf")
        self._store_ok = True

    async def run(self) -> HealthStatus:
        """Return the current status, or one that is at most `CACHE_SECONDS` old.

        A draining host does not check its store, so that it reports without a delay that it is draining.
        """
        if not self._sessions.draining:
            async with self._lock:
                if time.monotonic() - self._checked_at >= CACHE_SECONDS:
                    await self._check_store()
                    self._checked_at = time.monotonic()
        return self._status()

    def _status(self) -> HealthStatus:
        draining = self._sessions.draining
        parts = {"registry": True, "provider": True, "store": self._store_ok}
        return HealthStatus(all(parts.values()) and not draining, draining, parts)

    async def _check_store(self) -> None:
        store = self._sessions.runtime.store
        try:
            async with asyncio.timeout(STORE_TIMEOUT_SECONDS):
                await store.put(f"{PROBE}/{self._sessions.host_id}", b"1", ttl=60.0)
            ok, reason = True, ""
        except TimeoutError:
            ok, reason = False, f"the store did not answer within {STORE_TIMEOUT_SECONDS:g} s"
        except StoreUnavailableError as error:
            ok, reason = False, str(error)
        if ok != self._store_ok:
            self._store_ok = ok
            if ok:
                _log.info("ready again: the store accepts writes")
            else:
                _log.error("not ready: %s", reason)


async def health(context: RequestContext) -> Response:
    """Return whether the host accepts sessions; nothing in the response is private."""
    host = context.host
    health = await host.health_check.run()
    conversations = bool(context.sessions.transport.modes)
    provider = health.parts["provider"] and conversations and context.sessions.model_reachable
    # A host whose settings turn conversations off needs no provider.
    degraded = not provider and not context.sessions.factory.conversations_disabled
    body = {
        "status": "unhealthy" if not health.ready else "degraded" if degraded else "healthy",
        "registry": health.parts["registry"],
        "store": health.parts["store"],
        "provider": provider,
        "conversations": "on" if conversations else "off",
        "active_sessions": len(context.sessions.live),
        "uptime": host.uptime,
    }
    return JSONResponse(body, 200 if health.ready else 503)


async def live(context: RequestContext) -> Response:
    """Return that the process serves requests; it does so even without its store, and while it drains."""
    return JSONResponse({"status": "live", "uptime": context.host.uptime})


async def ready(context: RequestContext) -> Response:
    """Return whether a load balancer should send new clients to this host."""
    health = await context.host.health_check.run()
    reasons = [f"the {part} does not work" for part, works in health.parts.items() if not works]
    if health.draining:
        reasons = ["the host is draining"]
    body = {"status": "ready" if health.ready else "not_ready", "reasons": reasons}
    return JSONResponse(body, 200 if health.ready else 503)


async def status(context: RequestContext) -> Response:
    """Return the status of the host, as far as the user may see it."""
    host, sessions, options = context.host, context.sessions, context.host.options
    user, registry, now = context.identity.user, sessions.runtime.registry, sessions.runtime.store.now()
    reports = [each for each in await sessions.runtime.hosts.reports() if not each.is_silent(now)]
    elsewhere = [each for each in reports if each.id != sessions.host_id]
    held = {slot.item for slot in await sessions.owners.slots.held(user)}
    mine = {key for key, each in sessions.live.items() if each.session.user == user}
    return JSONResponse(
        {
            "user": user,
            "host": sessions.runtime.hosts.name,
            "hosts": 1 + len(elsewhere),
            "provider": sessions.factory.provider,
            "providerChoice": _provider(sessions.factory.provider_choice) if context.is_operator else None,
            "environment": _environment() if context.is_operator else None,
            "conversations": "on" if sessions.transport.modes else "off",
            "modes": sorted(sessions.transport.modes),
            "browserCalls": has_browser_calls(sessions.transport),
            "registry": registry.version,
            "versions": {
                "host": version("jackfield-host"),
                "kernel": version("jackfield-kernel"),
                "protocol": PROTOCOL,
            },
            "uptime": host.uptime,
            "draining": sessions.draining,
            "development": host.development is not None,
            "sessions": {
                "active": len(sessions.live),
                "onAllHosts": len(sessions.live) + sum(each.sessions for each in elsewhere),
                "yours": len(held | mine),
                "max": options.max_sessions,
                "maxYours": options.sessions_per_user,
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


def _environment() -> dict[str, Any]:
    """Return the commands that reach this host's Python environment from a terminal."""
    script = Path(sys.prefix) / "bin" / "activate"
    commands = [f"cd {shlex.quote(str(Path.cwd()))}"]
    if script.exists():
        commands.append(f". {shlex.quote(str(script))}")
    # An environment that uv created has no pip.
    has_pip = find_spec("pip") is not None
    return {"enter": commands, "install": "python -m pip install" if has_pip else "uv pip install"}


def _provider(choice: ProviderChoice) -> dict[str, Any]:
    return {"reason": choice.reason, "detected": choice.detected, "hints": list(choice.hints)}


HEALTH = Endpoint(
    "GET",
    "/health",
    "Report whether the host accepts sessions.",
    health,
    responses={
        200: (
            ResponseForm(
                "The host accepts sessions; `degraded` if the last attempt to reach the model failed "
                "or no provider was found.",
                "HealthResponse",
            ),
        ),
        503: (ResponseForm("The host does not accept sessions, or it is stopping.", "HealthResponse"),),
    },
    auth="public",
)

LIVE = Endpoint(
    "GET",
    "/health/live",
    "Report that the process serves requests; a supervisor restarts a host that does not answer.",
    live,
    responses={200: (ResponseForm("The process serves requests.", "LiveResponse"),)},
    auth="public",
)

READY = Endpoint(
    "GET",
    "/health/ready",
    "Report whether a load balancer should send new clients to this host.",
    ready,
    responses={
        200: (ResponseForm("A load balancer should send new clients to this host.", "ReadyResponse"),),
        503: (
            ResponseForm(
                "A load balancer should not send new clients to this host; `reasons` says why.",
                "ReadyResponse",
            ),
        ),
    },
    auth="public",
)

STATUS = Endpoint(
    "GET",
    "/status",
    "The status of the host: versions, sessions, limits and withheld tools.",
    status,
    responses={200: (ResponseForm("The status.", "StatusResponse"),)},
)
