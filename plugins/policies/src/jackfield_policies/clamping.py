"""In voice, fewer results: nobody listens to ten."""

from __future__ import annotations

from jackfield.governance import Call, Check
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_policies.settings import ClampingSettings


class Clamping(Check):
    """Lowers `top_k` in voice sessions before the handler sees it, and says so."""

    def __init__(self, settings: ClampingSettings, services: Services) -> None:  # noqa: ARG002
        self._top_k = settings.voice_top_k

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:
        """Tools with a `top_k`, in voice."""
        return session.mode == "voice" and "top_k" in tool.manifest.parameters.get("properties", {})

    def before(self, call: Call) -> None:
        """Clamp, then let it go on."""
        asked = call.args.get("top_k")
        if isinstance(asked, int | float) and asked > self._top_k:
            call.args["top_k"] = self._top_k
            call.decide("clamping", f"top_k {asked} -> {self._top_k}")
            call.meta["clamped"] = {"top_k": {"from": asked, "to": self._top_k}}
