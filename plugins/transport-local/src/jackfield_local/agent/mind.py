"""The agent for all sessions of the process; its model, where there is one, is prepared in the background."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

from jackfield.transport.protocol import ConnectionConfig, TransportError
from jackfield_embeddings import EmbeddingError

from jackfield_local.agent.answers import ResponseStyle
from jackfield_local.agent.calls import Setting
from jackfield_local.agent.decision import ModelDecider
from jackfield_local.agent.dialogue import AgentDialogue
from jackfield_local.agent.engine import INSTALL, Engine, Model, Prefix
from jackfield_local.agent.parameters import Tool, text_only_tools, tools_of
from jackfield_local.agent.prompt import is_usable as is_usable_tool
from jackfield_local.agent.prompt import static_prefix
from jackfield_local.agent.router import Router
from jackfield_local.mind import Dialogue
from jackfield_local.models.weights import located
from jackfield_local.settings import LocalSettings
from jackfield_local.zone import own_zone, zone_in

_log = logging.getLogger(__name__)

_MAGIC = b"GGUF"

MODEL_VARIABLE = "JACKFIELD_LOCAL_MODEL"
"""The environment variable that keeps `auto` from the language model, with the value `none`."""

Clock = Callable[[], datetime]


def is_engine_installed() -> bool:
    """Whether llama.cpp is in this environment."""
    return find_spec("xllamacpp") is not None


def is_switched_off() -> bool:
    """Whether the environment keeps `auto` from the language model."""
    return os.environ.get(MODEL_VARIABLE, "").strip() == "none"


def is_usable(settings: LocalSettings) -> bool:
    """Whether `auto` uses the language model now."""
    try:
        return not is_switched_off() and not lacking(settings)
    except OSError:  # A directory on the way to the file cannot be read.
        return False


def lacking(settings: LocalSettings) -> str:
    """What the language model needs and is not here, in one sentence; empty when all is."""
    if not is_engine_installed():
        return f"the language model needs llama.cpp, which is not installed; run: {INSTALL}"
    path = model_file(settings)
    if not path.is_file():
        if settings.model_path:
            return f"[transports.local] model_path is {settings.model_path!r}, and there is no such file"
        return f"the language model is not here yet ({path}); run: jackfield model get"
    try:
        with path.open("rb") as stream:
            magic = stream.read(len(_MAGIC))
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return "" if magic == _MAGIC else f"{path} is no GGUF file, so llama.cpp cannot load it"


def model_file(settings: LocalSettings) -> Path:
    """The GGUF file: the one in the settings, or the one that `jackfield model get` fetches."""
    return Path(settings.model_path).expanduser() if settings.model_path else located()


def with_model(settings: LocalSettings, clock: Clock | None = None) -> Agent:
    """An agent on the language model that the settings name."""
    caches = located().parent / "prompts"
    return Agent(settings, clock, Engine(model_file(settings), threads=settings.threads, caches=caches))


class Agent:
    """Opens conversations; a router decides in them, or a model once it is ready."""

    def __init__(
        self, settings: LocalSettings, clock: Clock | None = None, model: Model | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._model = model
        self._preparing: dict[Prefix, asyncio.Task[None]] = {}

    async def open(self, opening: ConnectionConfig) -> Dialogue:
        """A new conversation; the first one with these tools has the model prepared for them."""
        if opening.purpose == "summary":
            # The model would take minutes, and the router writes no text: the session has its own way.
            raise TransportError("invalid_request_error", "the local agent does not summarise")
        if isinstance(self._model, Engine) and (lack := lacking(self._settings)):
            raise TransportError("invalid_request_error", lack)
        setting = await asyncio.to_thread(self._setting, opening)
        if setting.model is not None and setting.model.prefix not in self._preparing:
            prefix = setting.model.prefix
            self._preparing[prefix] = asyncio.create_task(self._prepare(self._model, prefix))
        return AgentDialogue(opening, setting)

    async def ready(self) -> None:
        """Wait until the model is prepared for all conversations so far."""
        await asyncio.gather(*self._preparing.values())

    async def close(self) -> None:
        """Release the model."""
        for task in self._preparing.values():
            task.cancel()
        if self._preparing:
            await asyncio.wait(self._preparing.values())
        if self._model is not None:
            await self._model.close()

    async def _prepare(self, model: Model | None, prefix: Prefix) -> None:
        if model is None:
            return
        try:
            await model.prepare(prefix)
        except Exception as error:  # noqa: BLE001 - the router decides, whatever keeps the model from it
            _log.warning("the router decides, as the model could not be prepared: %s", error)
        else:
            _log.info("the model is ready")

    def _setting(self, opening: ConnectionConfig) -> Setting:
        from jackfield_local.models.phrases import embed_phrases

        name = zone_in(opening.instructions) or self._settings.time_zone or own_zone()
        zone = ZoneInfo(name) if name else datetime.now().astimezone().tzinfo
        assert zone is not None  # noqa: S101 - `astimezone` always gives one
        tools = tools_of(opening)
        try:
            usable = [each for each in tools if is_usable_tool(each)]
            router = Router(usable, embed_phrases, text_only_tools(opening))
        except EmbeddingError as error:
            raise TransportError("invalid_request_error", str(error)) from None
        style = ResponseStyle(opening.mode == "voice", zone, embed_phrases)
        clock = self._clock or (lambda: datetime.now(zone))
        return Setting(tools, router, self._decider(tools), style, clock, name)

    def _decider(self, tools: Sequence[Tool]) -> ModelDecider | None:
        if self._model is None:
            return None
        prefix, named = static_prefix(tools)
        if left := [each.id for each in tools if each not in named]:
            _log.info(
                "not offered to the model, for want of room or because its examples make values up: %s",
                ", ".join(left),
            )
        return ModelDecider(self._model, prefix, named)
