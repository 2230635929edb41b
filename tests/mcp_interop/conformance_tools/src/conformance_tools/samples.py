"""The capability `samples`: files that the tools of the suite show."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer
from jackfield.runtime import Runtime
from jackfield_capability_types.files import FileContent, ShownFile

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

FILES = {
    "picture": FileContent("image/png", base64.b64decode(PIXEL)),
    "sound": FileContent("audio/wav", b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x44\xac\0\0"),
    "text": FileContent("text/plain", b"This is an embedded resource content."),
}


class Samples:
    """Shows the files that the data of a result names, and changes the list of tools."""

    def started(self, runtime: Runtime) -> None:
        """Keep the runtime, whose registry changes."""
        self._registry = runtime.registry

    def change_tools(self) -> None:
        """Withhold a tool and offer it again, as for a tool of a server that changes and changes back."""
        self._registry.suspend("test_simple_text", "is withheld for a moment")
        self._registry.resume("test_simple_text")

    def shown_files(self, data: Any) -> Sequence[ShownFile]:
        """Return the named files."""
        names = data.get("samples", []) if isinstance(data, dict) else []
        return [ShownFile(name, f"/samples/{name}", len(FILES[name].content)) for name in names]

    async def read_file(self, file_id: str) -> FileContent | None:
        """Return a file."""
        return FILES.get(file_id)


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Offer `samples`."""
    return [CapabilityOffer("samples", lambda settings, services: Samples())]
