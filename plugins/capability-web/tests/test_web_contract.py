"""The web passes the conformance suite."""

from __future__ import annotations

from jackfield_capability_types.web import Web
from jackfield_testkit import WebContractTests, capability


class TestWeb(WebContractTests):
    async def create_web(self, host: str, seconds: float, max_bytes: int) -> Web:
        allow = ["*", f"*:{host.rpartition(':')[2]}", host]
        made: Web = capability("web", {"allow": allow, "timeout": seconds, "max_bytes": max_bytes})
        return made
