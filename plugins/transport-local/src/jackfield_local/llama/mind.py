"""The language model as a mind."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from jackfield.transport.protocol import Opening

from jackfield_local.llama.dialogue import LlamaDialogue
from jackfield_local.llama.engine import Engine
from jackfield_local.mind import Dialogue
from jackfield_local.models.weights import located
from jackfield_local.options import Options
from jackfield_local.planner.zone import own_zone, zone_in


class Llama:
    """Decides by a language model that runs in this process."""

    def __init__(self, chosen: Options) -> None:
        self._options = chosen
        path = Path(chosen.model_path).expanduser() if chosen.model_path else located()
        self._engine = Engine(path, threads=chosen.threads)
        self._warm = False

    async def open(self, opening: Opening) -> Dialogue:
        """A new conversation; the model is loaded, and reads what all begin with, for the first one."""
        name = zone_in(opening.instructions) or self._options.time_zone or own_zone()
        zone = ZoneInfo(name) if name else None
        dialogue = LlamaDialogue(opening, self._engine, lambda: datetime.now(zone).astimezone(zone), name)
        await self._engine.load()
        if not self._warm:
            self._warm = True
            await dialogue.warm_up()
        return dialogue

    async def close(self) -> None:
        """The model goes with the process."""
