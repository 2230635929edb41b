"""What a host says of itself when it is up: where it is, with what, for whom."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

from jackfield.settings import Settings

from jackfield_host.house import House


class Announcement(NamedTuple):
    """The facts of one start."""

    url: str
    others: str
    """How others reach it; empty where the address says so, or nobody does."""
    registry: str
    registry_file: str
    deployment: str
    provider: str
    provider_reason: str
    """Why that provider was chosen."""
    provider_hints: tuple[str, ...]
    """What to do to get a better one."""
    modes: tuple[str, ...]
    prompt: tuple[str, ...]
    """What the sessions of each mode begin with, in tokens, and that it is too much where it is."""
    store: str
    offered: tuple[str, ...]
    withheld: dict[str, str]
    """The tools that are not offered, each with the reason."""
    token: str
    """Who is let in."""
    sources: tuple[str, ...]
    """Where the settings came from."""

    def lines(self) -> Iterator[str]:
        """For people, who look at the last line first."""
        yield f"Jackfield {version('jackfield-host')}"
        if self.others:
            yield f"  others    {self.others}"
        yield f"  registry  {self.registry} ({self.registry_file}, {self.deployment})"
        yield f"  provider  {self.provider} ({', '.join(self.modes)}): {self.provider_reason}"
        for hint in self.provider_hints:
            yield f"  better    {hint}"
        yield from (f"  prompt    {figures}" for figures in self.prompt)
        yield f"  store     {self.store}"
        yield f"  tools     {len(self.offered)} offered: {', '.join(self.offered) or 'none'}"
        for reason, tools in self._withheld_for().items():
            yield f"  withheld  {', '.join(tools)}: {reason}"
        yield f"  token     {self.token}"
        yield f"  settings  {', '.join(self.sources) or 'the defaults'}"
        yield f"Open {self.url} · Ctrl-C stops"

    def _withheld_for(self) -> dict[str, list[str]]:
        """The tools that are not offered, by the reason."""
        reasons: dict[str, list[str]] = {}
        for tool, reason in self.withheld.items():
            reasons.setdefault(reason, []).append(tool)
        return reasons

    def facts(self) -> dict[str, Any]:
        """For machines."""
        return self._asdict()


def announcement(house: House, settings: Settings, port: int, sources: tuple[str, ...]) -> Announcement:
    """What there is to say about a house that listens on a port."""
    sessions = house.sessions
    registry = sessions.runtime.registry
    return Announcement(
        url=url(house.options.address, port),
        others=others(house.options.address, port),
        registry=registry.version,
        registry_file=str(settings.registry),
        deployment=registry.deployment.value,
        provider=sessions.factory.provider,
        provider_reason=sessions.factory.provider_choice.reason,
        provider_hints=sessions.factory.provider_choice.hints,
        modes=tuple(sorted(sessions.transport.modes)),
        prompt=tuple(prompt.excess or prompt.figures for prompt in sessions.factory.prompts),
        store=sessions.runtime.components.store_name,
        offered=tuple(sorted(registry.tools)),
        withheld=dict(sorted(registry.withheld.items())),
        token=_token(house),
        sources=sources,
    )


def url(address: str, port: int) -> str:
    """Where a browser on this machine finds the host."""
    name = address
    if _everywhere(address):
        name = "localhost"
    elif ":" in address:
        name = f"[{ipaddress.ip_address(address)}]"
    return f"http://{name}:{port}"


def others(address: str, port: int) -> str:
    """How other machines find a host that listens on every address of this one; empty for any other."""
    return f"can reach it at port {port} of every address of this machine" if _everywhere(address) else ""


def _everywhere(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_unspecified
    except ValueError:
        return False


def _token(house: House) -> str:
    options = house.options
    if not house.gate.asks_for_token:
        return (
            "not required: every program on this machine has access; if a proxy or tunnel leads here, "
            "set up a token (jackfield key)"
        )
    accepted = []
    if options.keys:
        accepted.append(f"an API key ({', '.join(sorted(options.keys))})")
    if options.jwt:
        accepted.append(f"a JWT for {options.jwt.audience}")
    return f"required: {' or '.join(accepted)}"
