"""The kernel's API stays compatible with published tools and plugins.

A removed or changed name needs another `API_VERSION` and its own listing; a new name only needs to be listed.
docs/registry.md explains the version.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jackfield.contract.snapshot import API_VERSION, seal
from jackfield.registry.registry import Registry, RegistryError

from compatibility.api_listing import listing
from compatibility.deployment import GOLDEN, REGISTRY, SITE, jackfield

HOW = "PYTHONPATH=tests python -m compatibility.api_listing"


def published() -> dict[str, str]:
    names: dict[str, str] = json.loads((GOLDEN / f"kernel-api-{API_VERSION}.json").read_text("utf-8"))
    return names


def test_published_names_keep_existing_with_compatible_signatures() -> None:
    now = listing()
    changed = [
        f"{name}: {how} -> {now.get(name)}" for name, how in published().items() if now.get(name) != how
    ]
    assert changed == [], f"this asks for another API_VERSION, with a listing of its own from `{HOW}`"


def test_everything_public_is_in_the_listing() -> None:
    names = sorted(listing().keys() - published().keys())
    file = f"tests/compatibility/golden/kernel-api-{API_VERSION}.json"
    assert not names, f"add to {file} what `{HOW}` prints for: {', '.join(names)}"


def of_api(version: str, folder: Path) -> Path:
    """Return the golden registry as a kernel of another API version would build it."""
    wire: dict[str, Any] = json.loads(REGISTRY.read_text("utf-8"))
    file = folder / "tool_registry.json"
    file.write_text(json.dumps(dict(seal({**wire, "kernel": {"version": "7.0", "api": version}}).wire)))
    return file


@pytest.mark.parametrize("version", ["0", "2"])
def test_a_registry_of_another_api_version_is_rejected_with_an_explanation(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = of_api(version, tmp_path)
    monkeypatch.syspath_prepend(str(SITE))
    with pytest.raises(RegistryError, match=f"built for version {version} of the kernel's API"):
        Registry.load(file)
    called = jackfield(tmp_path, "call", "parcel_motto")
    assert called.returncode == 1
    assert f"this kernel has version {API_VERSION}; run `jackfield build`" in " ".join(called.stderr.split())
    assert "Traceback" not in called.stderr


def test_a_plugin_that_implements_every_hook_is_accepted(tmp_path: Path) -> None:
    built = jackfield(tmp_path, "build", "--json", JACKFIELD_ALLOW="golden-*")
    assert built.returncode == 0, built.stdout
    shown = jackfield(tmp_path, "plugins", JACKFIELD_ALLOW="golden-*").stdout
    for offer in (
        "parcel_motto",
        "golden",
        "stamp",
        "hours",
        "PARCEL_MARK",
        "tariff",
        "scales",
        "watch",
        "parcels",
    ):
        assert offer in shown, offer
    assert jackfield(tmp_path, "parcels").stdout == "Parcels go everywhere.\n"
    called = json.loads(jackfield(tmp_path, "call", "--json", "parcel_price", '{"kilograms": 4}').stdout)
    assert called["answer"]["data"]["cents"] == 1000
    assert called["answer"]["intents"] == [{"type": "PARCEL_MARK", "number": 4}]
    assert called["decisions"] == {"stamp": "stamped", "hours": "pass", "validation": "defaults filled in"}


def test_a_transport_written_against_the_protocol_runs_a_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(SITE))
    from jackfield.transport.events import Closed, TextDelta, TurnComplete
    from jackfield.transport.protocol import ConnectionConfig

    async def main() -> list[Any]:
        import golden_plugin  # type: ignore[import-not-found]

        (offer,) = golden_plugin.jackfield_transports()
        transport = offer.create({})
        line = await transport.connect(ConnectionConfig("text", "Be brief.", {}))
        await line.send_text("hello")
        await line.close()
        return [event async for event in line.events()]

    events = asyncio.run(main())
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["You wrote: ", "hello"]
    assert [type(event) for event in events[-2:]] == [TurnComplete, Closed]
