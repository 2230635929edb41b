"""What a deployment may say about pages, in `[capabilities.web]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jackfield.settings import SettingsError

from jackfield_web.fetching.hosts import Hosts
from jackfield_web.tables import Kinds, refuse_unusable

WHERE = "capabilities.web"
KINDS: Kinds = {
    "allow": ((list,), 'a list of hosts such as ["docs.example.com", "*.example.org"]'),
    "deny": ((list,), 'a list of hosts such as ["intranet.example.com"]'),
    "timeout": ((int, float), "a number of seconds above 0"),
    "max_bytes": ((int,), "a number of bytes above 0"),
    "user_agent": ((str,), "a text"),
}

_OFF = (
    'fetching is off until the deployment says whose pages may be read: allow = ["docs.example.com"], or '
    'allow = ["*"] for every public host, in [capabilities.web]'
)


@dataclass(frozen=True, slots=True)
class WebOptions:
    """The settings, checked."""

    hosts: Hosts
    timeout: float = 15.0
    """Seconds from the call to the text, redirects and reading included."""

    max_bytes: int = 2 * 1024 * 1024
    """How much of a page is taken, before and after it is decompressed."""

    user_agent: str = "jackfield-web/0.1"

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> WebOptions:
        """The settings with their defaults, or a sentence about the one that cannot be used."""
        refuse_unusable(WHERE, KINDS, settings)
        agent = settings.get("user_agent", "")
        if not (agent.isascii() and agent.isprintable()):
            raise SettingsError(f"{WHERE}.user_agent: one line of plain characters is wanted, not {agent!r}")
        given = dict(settings)
        hosts = Hosts.of(given.pop("allow", []), given.pop("deny", []))
        return cls(hosts, **given)

    @property
    def unavailable(self) -> str | None:
        """Why no page can be had, as a clause; nothing when some can."""
        return None if self.hosts.allow else _OFF
