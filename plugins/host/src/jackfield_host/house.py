"""What every endpoint of a host shares."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jackfield_sessions.manager import SessionManager
from starlette.requests import HTTPConnection

from jackfield_host.lifecycle.readiness import Readiness
from jackfield_host.operations.downloads import Downloads
from jackfield_host.operations.figures import Trend
from jackfield_host.security.allowances import Allowances
from jackfield_host.security.gate import Gate
from jackfield_host.settings import HostSettings

if TYPE_CHECKING:
    from jackfield_host.plugin_endpoints import PluginEndpoint


@dataclass(frozen=True, slots=True)
class House:
    """One running host."""

    options: HostSettings
    gate: Gate
    sessions: SessionManager
    requests: Allowances
    readiness: Readiness
    trend: Trend
    downloads: Downloads
    endpoints: tuple[PluginEndpoint, ...] = ()
    """The endpoints of plugins."""
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, connection: HTTPConnection) -> House:
        """The host that a request has reached."""
        house: House = connection.app.state.house
        return house
