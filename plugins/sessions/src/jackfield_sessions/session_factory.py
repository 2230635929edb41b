"""Creates sessions, with the instructions that this deployment gives their models."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from jackfield import Mode
from jackfield.components import ProviderChoice
from jackfield.datetimes import is_zone
from jackfield.protocol.close_codes import CONVERSATIONS_OFF, PROVIDER_UNAVAILABLE
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.settings import NO_PROVIDER, Settings
from jackfield.toolsets import Toolset
from jackfield.transport.protocol import Transport

from jackfield_sessions.admission import Identity, SessionRefused
from jackfield_sessions.instructions import (
    FixedPrompt,
    estimated_tokens,
    fixed_prompt,
    folders,
    token_budget,
)

_log = logging.getLogger(__name__)

MAX_PROMPTS = 1000
"""How many prompts are kept; there is one for each mode and toolset."""


class ClientLocale(NamedTuple):
    """The time zone and the language of a user, as the client knows them."""

    time_zone: str | None = None
    language: str | None = None


NO_LOCALE = ClientLocale()


class SessionFactory:
    """Creates sessions of one deployment."""

    def __init__(self, runtime: Runtime, settings: Settings, transport: Transport) -> None:
        self._choice = runtime.components.provider_choice
        self._transport = transport
        self.provider = self._choice.name
        self.answer_tokens = settings.answer_tokens
        self._runtime = runtime
        self._settings = settings
        self._prompt_folders = folders(settings.prompts)
        self._fixed: dict[tuple[Mode, str, int, str], FixedPrompt] = {}
        self.prompts: list[FixedPrompt]
        """The fixed part of the prompt of each mode."""
        self.compose_prompts()

    def compose_prompts(self) -> None:
        """Compose the prompts: at the start, and after the registry or the prompt files were reloaded."""
        before, self._fixed = self._fixed, {}
        try:
            self.prompts = [self.prompt(mode, self._transport) for mode in sorted(self._transport.modes)]
        except BaseException:
            self._fixed = before
            raise

    def prompts_for(self, toolset: Toolset | None) -> list[FixedPrompt]:
        """Return the fixed part of the prompt of each mode, for sessions with a toolset."""
        if toolset is None:
            return self.prompts
        return [self.prompt(mode, self._transport, toolset) for mode in sorted(self._transport.modes)]

    @property
    def provider_choice(self) -> ProviderChoice:
        """Return which provider answers the next session, and why."""
        return self._choice.now(self._transport)

    @property
    def conversations_disabled(self) -> bool:
        """True if the settings turn conversations off."""
        return self.provider == NO_PROVIDER and not self._choice.detected

    def prompt(self, mode: Mode, transport: Transport, toolset: Toolset | None = None) -> FixedPrompt:
        """Return the fixed part of the prompt; all sessions with the same toolset share it."""
        name = toolset.key if toolset else ""
        key = mode, transport.adapter(mode), token_budget(self._settings, transport), name
        if key not in self._fixed:
            if len(self._fixed) >= MAX_PROMPTS:
                self._fixed.clear()
            tools = [tool.frozen for tool in self._runtime.registry.catalog(toolset).offered(mode)]
            self._fixed[key] = fixed_prompt(tools, mode, self._prompt_folders, adapter=key[1], budget=key[2])
        return self._fixed[key]

    def check_mode(self, mode: Mode, transport: Transport) -> None:
        """Raise `SessionRefused` if no model can answer in this mode."""
        if mode in transport.modes:
            return
        if self.provider == NO_PROVIDER:
            off = "Conversations are off: this host has no model provider. Tools can still be called."
            raise SessionRefused(CONVERSATIONS_OFF, off, suggestion=CONVERSATIONS_OFF.advice)
        raise SessionRefused(
            PROVIDER_UNAVAILABLE, f"The provider {self.provider} does not support {mode} sessions."
        )

    async def create(
        self, mode: Mode, identity: Identity, locale: ClientLocale, transport: Transport, **fields: Any
    ) -> Session:
        """Create and save a session that is not live yet; `fields` are additional fields of the session."""
        runtime, tokens, declaration_tokens = self._runtime, 0, 0
        owner = identity.session_fields
        owner["toolset"] = toolset = runtime.toolsets.choose(**owner)
        # Without a model, a user can still call tools in the session.
        if mode in transport.modes:
            prompt = self.prompt(mode, transport, toolset)
            tokens = estimated_tokens(prompt.with_context(_context(identity.user, locale.time_zone)))
            declaration_tokens = prompt.declaration_tokens
        session = await runtime.open_session(
            mode,
            **owner,
            prompt_tokens=tokens,
            declaration_tokens=declaration_tokens,
            **fields,
        )
        _log.info(
            "session %s (%s) opened on registry %s: about %d prompt tokens, %d declaration tokens",
            session.id, mode, runtime.registry.version, tokens, declaration_tokens,
        )  # fmt: skip
        return session

    def instructions(self, session: Session, locale: ClientLocale, transport: Transport) -> str:
        """Return the instructions of a session: the fixed part of the prompt, then its context."""
        context = _context(session.user or "", locale.time_zone)
        return self.prompt(session.mode, transport, session.toolset).with_context(context)

    def omitted_guides(self, session: Session, transport: Transport) -> dict[str, str]:
        """Return the guides that the instructions of a session omit, by tool."""
        tools = self._runtime.registry.catalog(session.toolset).tools
        prompt = self.prompt(session.mode, transport, session.toolset)
        return {tool: tools[tool].frozen.documentation for tool in prompt.omitted}


def _context(user: str, time_zone: str | None) -> dict[str, str]:
    """Return the time and the user, for the end of the prompt."""
    # The client may send an unknown time zone.
    zone = ZoneInfo(time_zone) if time_zone and is_zone(time_zone) else None
    now = datetime.now(zone) if zone else datetime.now().astimezone()
    return {"now": f"{now:%A, %d %B %Y, %H:%M} ({zone or now.tzname()}, UTC{now:%z})", "user": user}
