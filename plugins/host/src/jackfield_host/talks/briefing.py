"""What the model of a session is told, and the session it is told in."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jackfield import Mode
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.settings import Settings
from jackfield.transport.protocol import Transport
from jackfield_conversation.prompt import compose, estimated_tokens, folders

from jackfield_host.security.identity import Identity
from jackfield_host.talks.admission import TurnedAwayError
from jackfield_host.wire.closing import PROVIDER

_log = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where a user is and what is spoken there, as the client knows it."""

    time_zone: str | None = None
    language: str | None = None


NOWHERE = Place()


class Briefing:
    """Opens sessions with the instructions that this deployment gives."""

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        self.choice = runtime.provision.provider_choice
        self.provider = self.choice.name
        self._runtime = runtime
        self._prompts = folders(settings.prompts)

    async def session(
        self, mode: Mode, identity: Identity, place: Place, transport: Transport, **named: str
    ) -> Session:
        """A session that is kept, and not in conversation yet; `named` may fix its id and its secret."""
        if mode not in transport.modes:
            raise TurnedAwayError(PROVIDER, f"The provider {self.provider} carries no {mode}.")
        registry = self._runtime.registry
        prompt = compose(registry, mode, self._prompts, _now(identity.user, place.time_zone))
        declared = registry.provider_schemas(transport.adapter(mode), mode)
        tokens = estimated_tokens(str(declared))
        session = await self._runtime.open_session(
            mode,
            user=identity.user,
            roles=identity.roles,
            prompt_tokens=prompt.tokens,
            declaration_tokens=tokens,
            **named,
        )
        _log.info(
            "session %s (%s) opened on registry %s: about %d tokens of prompt, %d of declarations",
            session.id, mode, registry.version, prompt.tokens, tokens,
        )  # fmt: skip
        return session

    def instructions(self, session: Session, place: Place) -> str:
        """What the model of a session is told before anything else."""
        facts = _now(session.user or "", place.time_zone)
        return compose(self._runtime.registry, session.mode, self._prompts, facts).text


def _now(user: str, time_zone: str | None) -> dict[str, str]:
    """What is so just now, as the model is told."""
    try:
        zone = ZoneInfo(time_zone) if time_zone else None
    except (ZoneInfoNotFoundError, ValueError):  # The browser does not know it.
        zone = None
    now = datetime.now(zone) if zone else datetime.now().astimezone()
    return {"now": f"{now:%A, %d %B %Y, %H:%M} ({zone or now.tzname()}, UTC{now:%z})", "user": user}
