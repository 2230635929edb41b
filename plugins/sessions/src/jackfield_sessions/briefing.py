"""What the model of a session is told, and the session it is told in."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jackfield import Mode
from jackfield.protocol.close_codes import PROVIDER_UNAVAILABLE
from jackfield.provision import ProviderChoice
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.settings import Settings
from jackfield.transport.protocol import Transport

from jackfield_sessions.admission import Identity, TurnedAwayError
from jackfield_sessions.prompt import (
    FixedPrompt,
    estimated_tokens,
    fixed_prompt,
    folders,
    token_budget,
)

_log = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where a user is and what is spoken there, as the client knows it."""

    time_zone: str | None = None
    language: str | None = None


NOWHERE = Place()


class Briefing:
    """Opens sessions with the instructions that this deployment gives."""

    def __init__(self, runtime: Runtime, settings: Settings, transport: Transport) -> None:
        self._choice = runtime.provision.provider_choice
        self._transport = transport
        self.provider = self._choice.name
        self.answer_tokens = settings.answer_tokens
        self._runtime = runtime
        self._settings = settings
        self._prompts = folders(settings.prompts)
        self._fixed: dict[tuple[Mode, str, int], FixedPrompt] = {}
        self.prompts = [self.prompt(mode, transport) for mode in sorted(transport.modes)]
        """The fixed part of the prompt of each mode."""

    @property
    def choice(self) -> ProviderChoice:
        """Which provider answers the next session, and why."""
        return self._choice.now(self._transport)

    def prompt(self, mode: Mode, transport: Transport) -> FixedPrompt:
        """The fixed part of the prompt; composed once, so that all sessions begin with the same bytes."""
        key = mode, transport.adapter(mode), token_budget(self._settings, transport)
        if key not in self._fixed:
            tools = [tool.frozen for tool in self._runtime.registry.offered(mode)]
            self._fixed[key] = fixed_prompt(tools, mode, self._prompts, adapter=key[1], budget=key[2])
        return self._fixed[key]

    async def session(
        self, mode: Mode, identity: Identity, place: Place, transport: Transport, **named: str
    ) -> Session:
        """A session that is kept, and not in conversation yet; `named` may fix its id and its secret."""
        if mode not in transport.modes:
            raise TurnedAwayError(PROVIDER_UNAVAILABLE, f"The provider {self.provider} carries no {mode}.")
        registry = self._runtime.registry
        prompt = self.prompt(mode, transport)
        tokens = estimated_tokens(prompt.with_context(_now(identity.user, place.time_zone)))
        session = await self._runtime.open_session(
            mode,
            user=identity.user,
            roles=identity.roles,
            prompt_tokens=tokens,
            declaration_tokens=prompt.declaration_tokens,
            **named,
        )
        _log.info(
            "session %s (%s) opened on registry %s: about %d tokens of prompt, %d of declarations",
            session.id, mode, registry.version, tokens, prompt.declaration_tokens,
        )  # fmt: skip
        return session

    def instructions(self, session: Session, place: Place, transport: Transport) -> str:
        """What the model of a session is told before anything else: the fixed part, then what varies."""
        facts = _now(session.user or "", place.time_zone)
        return self.prompt(session.mode, transport).with_context(facts)

    def omitted_guides(self, mode: Mode, transport: Transport) -> dict[str, str]:
        """The guides that the instructions left out, by tool."""
        tools = self._runtime.registry.tools
        return {tool: tools[tool].frozen.documentation for tool in self.prompt(mode, transport).omitted}


def _now(user: str, time_zone: str | None) -> dict[str, str]:
    """What is so just now, as the model is told."""
    try:
        zone = ZoneInfo(time_zone) if time_zone else None
    except (ZoneInfoNotFoundError, ValueError):  # The browser does not know it.
        zone = None
    now = datetime.now(zone) if zone else datetime.now().astimezone()
    return {"now": f"{now:%A, %d %B %Y, %H:%M} ({zone or now.tzname()}, UTC{now:%z})", "user": user}
