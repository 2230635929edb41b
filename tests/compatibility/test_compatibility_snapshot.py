"""The format of a registry file: a published registry is served unchanged.

`formatVersion` changes when an older kernel would misread a file. A golden registry of the new format is then
added, and this one is rejected with an explanation or still read.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jackfield import ToolCall
from jackfield.contract.snapshot import FORMAT_VERSION, Snapshot, SnapshotError
from jackfield.runtime import Runtime
from jackfield.settings import Settings

from compatibility.deployment import REGISTRIES, REGISTRY, SITE, jackfield

WIRE: dict[str, Any] = json.loads(REGISTRY.read_text("utf-8"))


def test_the_golden_registry_has_the_current_format() -> None:
    assert WIRE["formatVersion"] == FORMAT_VERSION == 1


def test_the_golden_registry_is_read_with_its_hash_and_version() -> None:
    snapshot = Snapshot.load(REGISTRY)
    assert snapshot.version == WIRE["version"] == f"1.0.{WIRE['contentHash'].removeprefix('sha256:')[:8]}"
    price = snapshot.tools["parcel_price"]
    assert (price.manifest.version, price.handler) == ("1.2.0", "golden_tool_price.handler:execute")
    assert price.summary == "Tells what a parcel costs, in cents."
    assert price.provider_schemas["golden"]["name"] == "parcel_price"
    assert snapshot.capabilities == ("scales", "tariff")


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda path: path.stem)
def test_a_registry_built_by_another_kernel_version_is_served(
    registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In development mode, which stops at any difference between the frozen and the installed code.
    monkeypatch.syspath_prepend(str(SITE))

    async def main() -> tuple[Any, Any]:
        runtime = await Runtime.start(Settings(registry=registry, store="memory"))
        session = await runtime.open_session("voice", user="ada")
        calls = [
            ToolCall("parcel_price", '{"kilograms": 2}', "call_golden_0001"),
            ToolCall("parcel_book", "{}"),
        ]
        answers = await runtime.orchestrator.handle(session, calls)
        await runtime.close()
        return tuple(json.loads(answer.wire) for answer in answers)

    price, withheld = asyncio.run(main())
    assert price["data"] == {"cents": 500, "speed": "slow", "mode": "voice", "turn": 1}
    assert price["meta"]["registryVersion"] == Snapshot.load(registry).version
    assert "a policy that enforces requiresConfirmation" in withheld["error"]["message"]


def test_the_same_inputs_still_give_the_same_registry(tmp_path: Path) -> None:
    built = jackfield(tmp_path, "build", JACKFIELD_ALLOW="golden-*", SOURCE_DATE_EPOCH="1794787200")
    assert built.returncode == 0, built.stderr
    now = json.loads((tmp_path / "tool_registry.json").read_text("utf-8"))
    golden = json.loads(REGISTRIES[-1].read_text("utf-8"))
    later = ("kernel", "gitCommit")
    assert {name: each for name, each in now.items() if name not in later} == {
        name: each for name, each in golden.items() if name not in later
    }


@pytest.mark.parametrize("version", [2, 99, "1", None])
def test_an_unknown_format_is_rejected_with_an_explanation(version: Any, tmp_path: Path) -> None:
    file = tmp_path / "tool_registry.json"
    file.write_text(json.dumps({**WIRE, "formatVersion": version, "tools": {"laid": "out otherwise"}}))
    with pytest.raises(
        SnapshotError, match=f"the registry has format {version}, but this kernel only reads format 1"
    ):
        Snapshot.load(file)
    called = jackfield(tmp_path, "call", "parcel_motto")
    assert (called.returncode, "Traceback" in called.stderr) == (1, False)
    assert "run `jackfield build`" in called.stderr


@pytest.mark.parametrize("left_out", ["kernel", "tools", "plugins", "contentHash"])
def test_a_registry_with_a_missing_part_is_reported_as_damaged(left_out: str, tmp_path: Path) -> None:
    file = tmp_path / "tool_registry.json"
    file.write_text(json.dumps({name: each for name, each in WIRE.items() if name != left_out}))
    with pytest.raises(SnapshotError, match="edited or damaged"):
        Snapshot.load(file)
