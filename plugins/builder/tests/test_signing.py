"""Signing a registry: what other implementations see in it, keys, commands, and several people."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format  # type: ignore[import-untyped]
from in_toto_attestation.v1 import statement_pb2  # type: ignore[import-untyped]
from in_toto_attestation.v1.statement import Statement  # type: ignore[import-untyped]
from jackfield_cli import main
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

sys.path.insert(0, str(Path(__file__).parent))

from signed_deployment import BOTH, SignedDeployment, deployment, signed

__all__ = ["deployment", "signed"]


def jackfield(*arguments: object, **environ: str) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], env=environ)


def sign(deployment: SignedDeployment, name: str, *options: str) -> Result:
    return jackfield("sign", "--registry", deployment.registry, "--key", deployment.private(name), *options)


def raw_key(path: Path) -> bytes:
    """Return the 32 bytes of a public key; its DER encoding is a fixed prefix and these bytes."""
    lines = path.read_text().splitlines()
    der = base64.b64decode("".join(lines[1:-1]))
    assert der[:-32].hex() == "302a300506032b6570032100"
    return der[-32:]


def test_another_library_verifies_the_signatures(deployment: SignedDeployment) -> None:
    document = deployment.document()
    payload = base64.b64decode(document["payload"], validate=True)
    kind = document["payloadType"]
    # Written out here, so that it does not depend on the code under test.
    signed_bytes = b" ".join(
        [b"DSSEv1", str(len(kind)).encode(), kind.encode(), str(len(payload)).encode(), payload]
    )
    for name, signature in zip(BOTH, document["signatures"], strict=True):
        key = raw_key(deployment.public(name))
        value = base64.b64decode(signature["sig"], validate=True)
        assert VerifyKey(key).verify(signed_bytes, value) == signed_bytes
        with pytest.raises(BadSignatureError):
            VerifyKey(key).verify(signed_bytes + b" ", value)
        der = bytes.fromhex("302a300506032b6570032100") + key
        assert signature["keyid"] == hashlib.sha256(der).hexdigest()


def test_a_signature_of_another_library_counts(deployment: SignedDeployment) -> None:
    own = SigningKey.generate()
    der = bytes.fromhex("302a300506032b6570032100") + bytes(own.verify_key)
    public = deployment.folder / "carol.pub.pem"
    body = base64.b64encode(der).decode()
    public.write_text(f"-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
    value = own.sign(deployment.signed_bytes()).signature
    made = {"keyid": hashlib.sha256(der).hexdigest(), "sig": base64.b64encode(value).decode()}
    deployment.edit(lambda document: document["signatures"].append(made))

    keys = [f"--key={deployment.public('alice')}", f"--key={public}"]
    result = jackfield("verify", "--registry", deployment.registry, *keys, "--threshold=2")
    assert result.exit_code == 0, result.output
    assert "(alice, carol)" in result.output


def test_the_statement_is_valid_for_in_toto_and_names_every_tool_and_plugin(
    deployment: SignedDeployment,
) -> None:
    document = deployment.statement()
    parsed = Statement.copy_from_pb(json_format.Parse(json.dumps(document), statement_pb2.Statement()))
    parsed.validate()

    registry = json.loads(deployment.registry.read_text())
    digests = {each["name"]: each["digest"] for each in document["subject"]}
    assert digests[f"registry:{registry['version']}"] == {
        "sha256": hashlib.sha256(deployment.registry.read_bytes()).hexdigest()
    }
    assert {name for name in digests if not name.startswith("registry:")} == {
        "tool:sgn_one", "tool:sgn_two", "plugin:fab-enforcer:main",
    }  # fmt: skip
    for tool in registry["tools"]:
        owner, found = tool["distribution"], digests[f"tool:{tool['toolId']}"]
        assert f"sha256:{found['packageSha256']}" == owner["contentHash"]
        assert f"sha256:{found['codeSha256']}" == owner["codeHash"]
        # The entry as it stands on its line of the file.
        entry = json.dumps(tool, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert found["sha256"] == hashlib.sha256(entry.encode()).hexdigest()
        assert entry in deployment.registry.read_text()
    assert document["predicate"]["registry"]["contentHash"] == registry["contentHash"]


def test_the_sbom_is_valid_and_lists_what_is_installed(deployment: SignedDeployment) -> None:
    target = deployment.folder / "sbom.json"
    keys = [f"--key={deployment.public(name)}" for name in BOTH]
    result = jackfield("verify", "--registry", deployment.registry, *keys, "--sbom", target)
    assert result.exit_code == 0, result.output
    text = target.read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None

    components = {each["name"]: each for each in json.loads(text)["components"]}
    assert components["cryptography"]["version"] == version("cryptography")
    assert components["cryptography"]["purl"] == f"pkg:pypi/cryptography@{version('cryptography')}"
    needed = {each["ref"]: each.get("dependsOn", []) for each in json.loads(text)["dependencies"]}
    cffi = f"cffi@{version('cffi')}"
    assert cffi in needed[f"cryptography@{version('cryptography')}"]


def test_the_same_registry_and_packages_give_the_same_statement(deployment: SignedDeployment) -> None:
    before = deployment.document()["payload"]
    deployment.envelope.unlink()
    assert sign(deployment, "bob").exit_code == 0
    first = deployment.document()
    deployment.envelope.unlink()
    assert sign(deployment, "bob").exit_code == 0
    assert deployment.document() == first
    # The fixture signed while its site was not installed either.
    assert first["payload"] == before


def test_people_sign_one_after_another_and_nobody_twice(deployment: SignedDeployment) -> None:
    deployment.envelope.unlink()
    for count, name in enumerate(("alice", "bob", "mallory"), 1):
        result = jackfield(
            "sign", "--registry", deployment.registry, "--key", deployment.private(name), "--json"
        )
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["signatures"] == count
        assert json.loads(result.stdout)["key"] == deployment.key_id(name)
    assert stat.S_IMODE(deployment.envelope.stat().st_mode) == 0o644
    again = sign(deployment, "bob")
    assert (again.exit_code, "bob has signed this registry already" in again.output) == (1, True)


def test_a_new_registry_starts_a_new_envelope(deployment: SignedDeployment) -> None:
    deployment.edit_registry(lambda wire: wire["tools"].pop())
    result = sign(deployment, "alice")
    assert result.exit_code == 0, result.output
    assert "The existing envelope was for a different registry and has been replaced." in result.output
    assert [each["keyid"] for each in deployment.document()["signatures"]] == [deployment.key_id("alice")]


def test_a_signer_sees_how_the_statement_of_others_differs(deployment: SignedDeployment) -> None:
    def other(statement: dict[str, object]) -> None:
        predicate = statement["predicate"]
        assert isinstance(predicate, dict)
        found = next(each for each in predicate["sbom"]["components"] if each["name"] == "cryptography")
        found["version"] = "1.0\x1b[31m"

    deployment.edit_statement(other, ["alice"])
    result = sign(deployment, "bob")
    assert result.exit_code == 0, result.output
    assert "Your environment differs from the one in the statement that others signed." in result.output
    assert "cryptography (1.0" in result.output
    assert "\x1b" not in result.output


def test_an_envelope_that_cannot_be_read_is_not_replaced(deployment: SignedDeployment) -> None:
    deployment.envelope.write_text("{")
    result = sign(deployment, "bob")
    assert (result.exit_code, "remove the file to create a new envelope" in result.output) == (1, True)
    assert deployment.envelope.read_text() == "{"


def test_an_expiry_is_part_of_the_statement(deployment: SignedDeployment) -> None:
    common = ("sign", "--registry", deployment.registry, "--key")
    late = jackfield(*common, deployment.private("mallory"), "--expires", "2999-12-31")
    assert (late.exit_code, "only the first signature sets an expiry" in late.output) == (1, True)
    deployment.envelope.unlink()
    assert jackfield(*common, deployment.private("bob"), "--expires", "2999-12-31").exit_code == 0
    assert deployment.statement()["predicate"]["expires"] == "2999-12-31T00:00:00Z"
    result = jackfield("verify", "--registry", deployment.registry, "--key", deployment.public("bob"))
    assert "the signatures expire at 2999-12-31" in result.output


def test_new_keys_are_private_and_replace_nothing(tmp_path: Path) -> None:
    passphrase = {"JACKFIELD_SIGNING_PASSPHRASE": "correct horse"}
    before = os.umask(0)
    try:
        result = jackfield("keys", "new", tmp_path / "dora", **passphrase)
    finally:
        os.umask(before)
    assert result.exit_code == 0, result.output
    private, public = tmp_path / "dora.pem", tmp_path / "dora.pub.pem"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(public.stat().st_mode) == 0o644
    assert "BEGIN ENCRYPTED PRIVATE KEY" in private.read_text()
    assert jackfield("keys", "id", public).output.strip() in result.output

    content = private.read_text()
    again = jackfield("keys", "new", tmp_path / "dora", **passphrase)
    assert (again.exit_code, "already exists" in again.output) == (1, True)
    assert private.read_text() == content
    (tmp_path / "link.pem").symlink_to(tmp_path / "elsewhere")
    linked = jackfield("keys", "new", tmp_path / "link", **passphrase)
    assert (linked.exit_code, (tmp_path / "elsewhere").exists()) == (1, False)
    bare = jackfield("keys", "new", tmp_path / "bare", JACKFIELD_SIGNING_PASSPHRASE="")
    assert (bare.exit_code, "--no-passphrase" in bare.output) == (2, True)


def test_a_passphrase_comes_from_the_environment(deployment: SignedDeployment) -> None:
    name = deployment.folder / "dora"
    jackfield("keys", "new", name, JACKFIELD_SIGNING_PASSPHRASE="correct horse")
    common = ("sign", "--registry", deployment.registry, "--key", f"{name}.pem")
    missing = jackfield(*common, JACKFIELD_SIGNING_PASSPHRASE="")
    assert (missing.exit_code, "set JACKFIELD_SIGNING_PASSPHRASE" in missing.output) == (1, True)
    wrong = jackfield(*common, JACKFIELD_SIGNING_PASSPHRASE="wrong")
    assert (wrong.exit_code, "the passphrase is wrong" in wrong.output) == (1, True)
    assert jackfield(*common, JACKFIELD_SIGNING_PASSPHRASE="correct horse").exit_code == 0


def test_a_key_that_others_can_read_is_refused(deployment: SignedDeployment) -> None:
    deployment.private("mallory").chmod(0o640)
    result = sign(deployment, "mallory")
    assert (result.exit_code, "others can access this key (mode 0640)" in result.output) == (1, True)


def test_only_ed25519_keys_are_accepted(deployment: SignedDeployment) -> None:
    own = generate_private_key(SECP256R1())
    pem = own.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = deployment.folder / "ec.pem"
    path.touch(0o600)
    path.write_bytes(pem)
    result = jackfield("sign", "--registry", deployment.registry, "--key", path)
    assert (result.exit_code, "not an Ed25519 key" in result.output) == (1, True)
    public = deployment.folder / "ec.pub.pem"
    public.write_bytes(
        own.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    result = jackfield("verify", "--registry", deployment.registry, "--key", public)
    assert (result.exit_code, "not an Ed25519 key" in result.output) == (1, True)


COMMAND = """\
import sys
from nacl.encoding import {encoder}
from nacl.signing import SigningKey
data = sys.stdin.buffer.read()
sys.stdout.buffer.write(SigningKey({seed!r}).sign(data, {encoder}).signature)
"""


@pytest.mark.parametrize("encoder", ["RawEncoder", "Base64Encoder"])
def test_a_command_signs_without_showing_its_key(deployment: SignedDeployment, encoder: str) -> None:
    own = SigningKey.generate()
    der = bytes.fromhex("302a300506032b6570032100") + bytes(own.verify_key)
    body = base64.b64encode(der).decode()
    public = deployment.folder / "hardware.pub.pem"
    public.write_text(f"-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
    program = deployment.folder / "agent.py"
    program.write_text(COMMAND.format(encoder=encoder, seed=bytes(own)))
    config = deployment.folder / "jackfield.toml"
    config.write_text(f"sign_command = {json.dumps([sys.executable, str(program)])}\n")
    common = ("sign", "--registry", deployment.registry, "--config", config, "--public-key")

    mismatched = jackfield(*common, deployment.public("mallory"))
    assert (mismatched.exit_code, "does not match the public key" in mismatched.output) == (1, True)
    assert len(deployment.document()["signatures"]) == 2
    result = jackfield(*common, public)
    assert result.exit_code == 0, result.output
    verified = jackfield("verify", "--registry", deployment.registry, "--key", public)
    assert verified.exit_code == 0, verified.output


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit(3)", "failed with status 3"),
        ("print('no')", "printed no signature"),
        ("import sys; sys.stdout.write('A' * 10_000_000)", "printed no signature"),
    ],
)
def test_a_command_that_fails_writes_nothing(deployment: SignedDeployment, program: str, reason: str) -> None:
    before = deployment.envelope.read_bytes()
    config = deployment.folder / "jackfield.toml"
    config.write_text(f"sign_command = {json.dumps([sys.executable, '-c', program])}\n")
    result = jackfield(
        "sign", "--registry", deployment.registry, "--config", config,
        "--public-key", deployment.public("mallory"),
    )  # fmt: skip
    assert (result.exit_code, reason in result.output) == (1, True), result.output
    assert deployment.envelope.read_bytes() == before


def test_usage_errors_say_what_is_missing(deployment: SignedDeployment) -> None:
    for arguments, reason in (
        (("sign",), "give --key FILE"),
        (("sign", "--public-key", "x"), "needs the setting `sign_command`"),
        (("sign", "--key", "x", "--public-key", "x"), "not both"),
        (("verify",), "there is no trusted key"),
    ):
        result = jackfield(*arguments, "--registry", deployment.registry)
        assert (result.exit_code, reason in result.output) == (2, True), result.output
    missing = jackfield("sign", "--registry", deployment.registry, "--key", deployment.folder / "nobody.pem")
    assert (missing.exit_code, "`jackfield keys new` creates one" in missing.output) == (1, True)


def test_verify_uses_the_settings_and_prints_json(deployment: SignedDeployment) -> None:
    config = deployment.folder / "jackfield.toml"
    pem = deployment.public("bob").read_text()
    trusted = [str(deployment.public("alice")), pem]
    config.write_text(f"signature_threshold = 2\ntrusted_keys = {json.dumps(trusted)}\n")
    result = jackfield("verify", "--registry", deployment.registry, "--config", config, "--json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert shown["valid"] is True
    assert [each["keyId"] for each in shown["signers"]] == [deployment.key_id(name) for name in BOTH]
    deployment.edit(lambda document: document["signatures"].pop())
    result = jackfield("verify", "--registry", deployment.registry, "--config", config, "--json")
    assert (result.exit_code, json.loads(result.stdout)["valid"]) == (1, False)


@pytest.mark.parametrize("keys", ["", 'trusted_keys = ["a.pub.pem"]\n'])
def test_a_threshold_that_cannot_be_met_is_an_error_in_the_settings(tmp_path: Path, keys: str) -> None:
    config = tmp_path / "jackfield.toml"
    config.write_text(f"{keys}signature_threshold = 2\n")
    result = jackfield("verify", "--config", config)
    assert (result.exit_code, "signature_threshold: 2 keys are required" in result.output) == (2, True)
