"""A host with trusted keys: what it refuses at startup, and when a session resumes."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from host_harness import HostFolder, HostProcess, scripted_provider
from jackfield.contract.snapshot import seal
from jackfield.signatures.dsse_envelope import envelope_path
from jackfield_builder.signatures.signed_registry import sign_registry
from jackfield_builder.signatures.signers import create_key_pair, read_signer
from jackfield_scripted import ScriptedModel


async def answers(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Yes.")


@pytest.fixture
def signed(host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch) -> HostFolder:
    """Return a production deployment whose registry two trusted people have signed."""
    registry = host_folder.path / "tool_registry.json"
    shutil.copy(host_folder.registry, registry)
    public = []
    for name in ("alice", "bob"):
        private = host_folder.path / f"{name}.pem"
        public.append(str(host_folder.path / f"{name}.pub.pem"))
        create_key_pair(private, Path(public[-1]), None)
        sign_registry(registry, read_signer(private, None))
    monkeypatch.setenv("JACKFIELD_DEPLOYMENT", "production")
    monkeypatch.setenv("JACKFIELD_TRUSTED_KEYS", ",".join(public))
    monkeypatch.setenv("JACKFIELD_SIGNATURE_THRESHOLD", "2")
    host_folder.create_store()
    return HostFolder(host_folder.path, registry, host_folder.site)


def without_envelope(registry: Path) -> None:
    envelope_path(registry).unlink()


def with_another_tool(registry: Path) -> None:
    """Change a tool and seal the registry again, so that only the signatures give it away."""
    wire = json.loads(registry.read_text())
    tool = next(each for each in wire["tools"] if each["toolId"] == "hst_look")
    tool["documentation"] += "Obey."
    registry.write_text(json.dumps(seal(wire).wire))


def with_another_statement(registry: Path) -> None:
    path = envelope_path(registry)
    document = json.loads(path.read_text())
    statement = json.loads(base64.b64decode(document["payload"]))
    statement["subject"][1]["digest"]["codeSha256"] = "0" * 64
    document["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    path.write_text(json.dumps(document))


def with_one_signature(registry: Path) -> None:
    path = envelope_path(registry)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "signatures": document["signatures"][:1]}))


REFUSED: dict[Callable[[Path], None], str] = {
    without_envelope: "the registry is not signed",
    with_another_tool: "tool:hst_look differs from the signed version",
    with_another_statement: "0 of 2 required trusted keys signed",
    with_one_signature: "1 of 2 required trusted keys signed (alice)",
}


@pytest.mark.parametrize("tamper", REFUSED)
def test_a_production_host_does_not_start_on_a_tampered_registry(
    signed: HostFolder, tamper: Callable[[Path], None]
) -> None:
    tamper(signed.registry)

    async def main() -> None:
        async with scripted_provider(answers) as served:
            host = HostProcess(signed, served)
            with pytest.raises(AssertionError):
                await host.start()
            assert await host.ended() != 0
            output = host.output.read_text()
            assert REFUSED[tamper] in output
            assert "Traceback" not in output

    asyncio.run(main())


def test_a_development_host_says_so_and_starts(signed: HostFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JACKFIELD_DEPLOYMENT", "development")
    without_envelope(signed.registry)

    async def main() -> None:
        async with (
            scripted_provider(answers) as served,
            HostProcess(signed, served) as host,
            host.client("text") as ada,
        ):
            await ada.say("text", text="hello")
            await ada.until_type("turn_complete")
        assert "a production host with these settings would not start" in host.output.read_text()

    asyncio.run(main())


def test_a_signed_registry_is_served_and_sessions_resume_only_while_it_is_intact(signed: HostFolder) -> None:
    intact = {path: path.read_bytes() for path in (signed.registry, envelope_path(signed.registry))}

    async def main() -> None:
        async with scripted_provider(answers) as served, HostProcess(signed, served) as host:
            async with host.client("text") as ada:
                await ada.say("text", text="hello")
                await ada.until_type("turn_complete")
            for tamper, reason in REFUSED.items():
                tamper(signed.registry)
                async with host.connected("text") as back:
                    await back.say("resume", token=ada.token, lastEvent=ada.last_event)
                    assert (await back.until_closed())[0] == 1011
                    told = back.of("error")[0]["message"]
                    assert "the signatures of this host's registry are no longer valid" in told
                    assert str(signed.path) not in told
                assert reason in host.output.read_text()
                for path, content in intact.items():
                    path.write_bytes(content)
            async with host.connected("text") as back:
                await back.say("resume", token=ada.token, lastEvent=ada.last_event)
                await back.until(lambda: back.session)
                await back.say("text", text="again")
                await back.until_type("turn_complete")
            await host.kill()
            # Another host takes the session over, with a key that was revoked in the meantime.
            shutil.copy(signed.path / "alice.pub.pem", signed.path / "bob.pub.pem")
            other = HostProcess(signed, served)
            with pytest.raises(AssertionError):
                await other.start()
            assert await other.ended() != 0
            assert "trusted_keys has 1 different keys" in other.output.read_text()

    asyncio.run(main())


def test_without_trusted_keys_nothing_is_checked(signed: HostFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JACKFIELD_TRUSTED_KEYS", "JACKFIELD_SIGNATURE_THRESHOLD"):
        monkeypatch.delenv(name)
    envelope_path(signed.registry).write_text("not an envelope")

    async def main() -> None:
        async with (
            scripted_provider(answers) as served,
            HostProcess(signed, served) as host,
            host.client("text") as ada,
        ):
            await ada.say("text", text="hello")
            await ada.until_type("turn_complete")

    asyncio.run(main())
