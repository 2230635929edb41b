"""A signed registry in a folder, and what an attacker can do to its files."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from jackfield.contract.snapshot import seal
from jackfield.settings import Settings
from jackfield.signatures.dsse_envelope import PAYLOAD_TYPE, envelope_path, pre_authentication_encoding
from jackfield.signatures.requirement import RequiredSignatures
from jackfield_builder.signatures.signed_registry import sign_registry
from jackfield_builder.signatures.signers import create_key_pair, read_signer
from jackfield_testkit.site_packages import SitePackages

BOTH = ("alice", "bob")
"""The people whose keys are trusted."""

PEOPLE = ("alice", "bob", "mallory")


class SignedDeployment:
    """A folder with a registry, its envelope, and the keys of three people, of which two are trusted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registry = folder / "tool_registry.json"
        self.envelope = envelope_path(self.registry)

    def create_keys(self) -> None:
        for name in PEOPLE:
            create_key_pair(self.private(name), self.public(name), None)

    def private(self, name: str) -> Path:
        return self.folder / f"{name}.pem"

    def public(self, name: str) -> Path:
        return self.folder / f"{name}.pub.pem"

    def key_id(self, name: str) -> str:
        return read_signer(self.private(name), None).public_key.key_id

    def required(self, deployment: str = "production", threshold: int = 2) -> RequiredSignatures:
        """Return what a host with these settings requires."""
        trusted = (str(self.public("alice")), str(self.public("bob")))
        settings = Settings(
            registry=self.registry,
            deployment=deployment,  # type: ignore[arg-type]
            trusted_keys=trusted,
            signature_threshold=threshold,
        )
        found = RequiredSignatures.of(settings)
        assert found
        return found

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.envelope.read_text())
        return document

    def edit(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Edit the envelope, as anybody with access to the file can."""
        document = self.document()
        change(document)
        self.envelope.write_text(json.dumps(document))

    def statement(self) -> dict[str, Any]:
        statement: dict[str, Any] = json.loads(base64.b64decode(self.document()["payload"]))
        return statement

    def edit_statement(self, change: Callable[[dict[str, Any]], None], by: Iterable[str] = ()) -> None:
        """Edit the statement; the people in `by` sign it again, otherwise the old signatures stay."""
        statement = self.statement()
        change(statement)
        self.replace_payload(json.dumps(statement).encode(), by)

    def replace_payload(self, payload: bytes, by: Iterable[str] = (), kind: str = PAYLOAD_TYPE) -> None:
        document = self.document()
        document |= {"payload": base64.b64encode(payload).decode(), "payloadType": kind}
        if by:
            data = pre_authentication_encoding(kind, payload)
            document["signatures"] = [self.signature(name, data) for name in by]
        self.envelope.write_text(json.dumps(document))

    def signature(self, name: str, data: bytes) -> dict[str, str]:
        signer = read_signer(self.private(name), None)
        return {"keyid": signer.public_key.key_id, "sig": base64.b64encode(signer.sign(data)).decode()}

    def signed_bytes(self) -> bytes:
        document = self.document()
        return pre_authentication_encoding(document["payloadType"], base64.b64decode(document["payload"]))

    def edit_registry(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Edit the registry and seal it again, so that it is a valid registry."""
        wire = json.loads(self.registry.read_text())
        change(wire)
        self.registry.write_text(json.dumps(seal(wire).wire))

    def link_envelope(self, target: str) -> None:
        self.envelope.unlink()
        self.envelope.symlink_to(target)

    def pipe(self) -> None:
        self.envelope.unlink()
        os.mkfifo(self.envelope)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> SignedDeployment:
    """Create a registry with two tools and a plugin that Alice and Bob have signed."""
    site = SitePackages(tmp_path_factory.mktemp("site"))
    site.tool("sgn_one", distribution="fab-sgn-one")
    site.tool("sgn_two", distribution="fab-sgn-two")
    site.enforcer()
    deployment = SignedDeployment(site.folder)
    assert site.frozen("fab-*") == deployment.registry
    deployment.create_keys()
    for name in BOTH:
        sign_registry(deployment.registry, read_signer(deployment.private(name), None))
    return deployment


@pytest.fixture
def deployment(signed: SignedDeployment, tmp_path: Path) -> SignedDeployment:
    """Copy the signed registry and its keys, for one test to tamper with."""
    for path in signed.folder.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    return SignedDeployment(tmp_path)
