"""The state that every endpoint of a running host shares, and the admission of requests to it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jackfield_sessions.admission import Identity
from jackfield_sessions.manager import SessionManager
from starlette.requests import HTTPConnection
from starlette.types import Scope

from jackfield_host.errors import HttpError
from jackfield_host.security.authenticator import Authenticator, RequestInfo
from jackfield_host.security.shared_limits import SharedTokenBuckets
from jackfield_host.settings import HostSettings

if TYPE_CHECKING:
    from jackfield_host.development.status import DevelopmentStatus
    from jackfield_host.endpoints.downloads import Downloads
    from jackfield_host.endpoints.health import HealthCheck
    from jackfield_host.endpoints.operations import MetricsHistory
    from jackfield_host.heartbeat import Heartbeat
    from jackfield_host.plugin_endpoints import PluginEndpoint

OPERATOR = "operator"
"""The role of users who may see other users' sessions and settle their calls."""


@dataclass(frozen=True, slots=True)
class Host:
    """One running host."""

    options: HostSettings
    authenticator: Authenticator
    sessions: SessionManager
    request_limits: SharedTokenBuckets
    health_check: HealthCheck
    metrics_history: MetricsHistory
    heartbeat: Heartbeat
    downloads: Downloads
    endpoints: tuple[PluginEndpoint, ...] = ()
    """The endpoints of plugins."""
    development: DevelopmentStatus | None = None
    """The status of the development loop of `jackfield dev`."""
    started_at: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, connection: HTTPConnection) -> Host:
        """Return the host that serves a connection."""
        host: Host = connection.app.state.host
        return host

    @property
    def uptime(self) -> float:
        """Seconds since the start."""
        return round(time.monotonic() - self.started_at, 3)

    def is_operator(self, identity: Identity) -> bool:
        """Return whether a user has the operator role; on a host without tokens every user has it."""
        return not self.authenticator.requires_token or OPERATOR in identity.roles

    async def authenticate(self, scope: Scope, auth: str = "user") -> Identity | None:
        """Return the user who sends a request, or raise the reason for refusing it.

        Checks the `Host` and `Origin` headers, the token, the rate limit and bans. With `auth="public"` only
        the headers are checked and no user is returned; with `auth="operator"` the user needs that role.
        """
        request_info = RequestInfo.from_scope(scope)
        if auth == "public":
            self.authenticator.check_origin(request_info, page=True)
            return None
        identity = self.authenticator.authenticate(request_info)
        seconds = await self.request_limits.take(identity.user)
        if seconds > 0:
            limit = f"{self.options.requests_per_minute:g} requests per minute"
            raise HttpError(429, "too_many_requests", f"Rate limit reached: {limit}.", retry_after=seconds)
        await self.sessions.admission.check_ban(identity)
        if auth == "operator":
            self.require_operator(identity)
        return identity

    def require_operator(self, identity: Identity) -> None:
        """Reject a user without the operator role."""
        if not self.is_operator(identity):
            raise HttpError(403, "not_operator", f"This endpoint requires the `{OPERATOR}` role.")
