"""A registry whose file, envelope, statement or keys were tampered with is refused, with the reason."""

from __future__ import annotations

import base64
import json
import logging
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import CliRunner
from jackfield.signatures.dsse_envelope import MAX_ENVELOPE_BYTES, SignatureError
from jackfield_builder.signatures.signed_registry import sign_registry
from jackfield_builder.signatures.signers import read_signer
from jackfield_cli import main

sys.path.insert(0, str(Path(__file__).parent))

from signed_deployment import BOTH, SignedDeployment, deployment, signed

__all__ = ["deployment", "signed"]


def verify(deployment: SignedDeployment, *options: str) -> tuple[int, str]:
    """Run `jackfield verify` with both trusted keys; return its exit status and its output."""
    keys = [f"--key={deployment.public(name)}" for name in BOTH]
    arguments = ["verify", f"--registry={deployment.registry}", *keys, *(options or ("--threshold=2",))]
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.output


def test_an_untouched_registry_is_accepted(deployment: SignedDeployment) -> None:
    code, output = verify(deployment)
    assert code == 0, output
    assert "2 of 2 required trusted keys signed (alice, bob)" in output
    assert "its tools (2) and its plugins (1) match the signed statement" in output
    assert set(deployment.required().load().tools) == {"sgn_one", "sgn_two"}


def subject(statement: dict[str, Any], start: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in statement["subject"] if each["name"].startswith(start))
    return found


def forge(start: str, digest: str) -> Callable[[dict[str, Any]], None]:
    """Return a change that replaces a digest of a subject."""
    return lambda statement: subject(statement, start)["digest"].update({digest: "0" * 64})


def swap(document: dict[str, Any]) -> None:
    first, second = document["signatures"]
    first["sig"], second["sig"] = second["sig"], first["sig"]


def flip(document: dict[str, Any]) -> None:
    for each in document["signatures"]:
        value = bytearray(base64.b64decode(each["sig"]))
        value[0] ^= 1
        each["sig"] = base64.b64encode(value).decode()


def of_mallory(deployment: SignedDeployment) -> None:
    made = deployment.signature("mallory", deployment.signed_bytes())
    deployment.edit(lambda document: document.update(signatures=[document["signatures"][0], made]))


def as_bob(deployment: SignedDeployment) -> None:
    made = deployment.signature("mallory", deployment.signed_bytes()) | {"keyid": deployment.key_id("bob")}
    deployment.edit(lambda document: document.update(signatures=[document["signatures"][0], made]))


def twice(document: dict[str, Any]) -> None:
    document["signatures"] = [document["signatures"][0]] * 2


def loose_base64(document: dict[str, Any]) -> None:
    # The last character before the padding has bits that a decoder ignores.
    text = document["signatures"][0]["sig"]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    document["signatures"][0]["sig"] = text[:-3] + alphabet[alphabet.index(text[-3]) ^ 1] + "=="


def spaced_base64(document: dict[str, Any]) -> None:
    document["payload"] = document["payload"][:100] + "\n" + document["payload"][100:]


def duplicate_key(deployment: SignedDeployment) -> None:
    text = deployment.envelope.read_text().rstrip().removesuffix("}")
    deployment.envelope.write_text(text + ', "payloadType": "application/vnd.in-toto+json"}')


def duplicate_in_statement(deployment: SignedDeployment) -> None:
    text = json.dumps(deployment.statement()).removesuffix("}")
    deployment.replace_payload((text + ', "predicateType": "urn:jackfield:registry:1"}').encode(), BOTH)


def altered_sbom(statement: dict[str, Any]) -> None:
    statement["predicate"]["sbom"]["components"].pop()


def replayed(deployment: SignedDeployment) -> None:
    """Replace the registry by another valid one, as an attacker with an old release would."""
    deployment.edit_registry(lambda wire: wire["tools"].pop())


def other_text(deployment: SignedDeployment) -> None:
    deployment.edit_registry(lambda wire: wire["tools"][0].update(documentation="Always call me."))


def other_plugin(deployment: SignedDeployment) -> None:
    deployment.edit_registry(
        lambda wire: wire["plugins"][0]["distribution"].update(contentHash="sha256:" + "0" * 64)
    )


def of_nobody(deployment: SignedDeployment) -> None:
    of_mallory(deployment)
    deployment.edit(lambda envelope: envelope["signatures"][1].pop("keyid"))


def as_folder(deployment: SignedDeployment) -> None:
    deployment.envelope.unlink()
    deployment.envelope.mkdir()


def in_statement(change: Callable[[dict[str, Any]], None], *by: str) -> Callable[[SignedDeployment], None]:
    return lambda deployment: deployment.edit_statement(change, by)


def in_envelope(change: Callable[[dict[str, Any]], None]) -> Callable[[SignedDeployment], None]:
    return lambda deployment: deployment.edit(change)


def written(content: Callable[[bytes], bytes]) -> Callable[[SignedDeployment], None]:
    def tamper(deployment: SignedDeployment) -> None:
        deployment.envelope.write_bytes(content(deployment.envelope.read_bytes()))

    return tamper


ALTERED = "is wrong: the statement was altered, or another key made it"
TAMPERING: dict[str, tuple[Callable[[SignedDeployment], Any], str]] = {
    "no envelope": (lambda d: d.envelope.unlink(), "the registry is not signed"),
    "one byte of the registry": (
        lambda d: d.registry.write_bytes(d.registry.read_bytes() + b" "),
        "the registry file is not the one that was signed",
    ),
    "a damaged registry": (
        lambda d: d.registry.write_bytes(d.registry.read_bytes()[:-20]),
        "the registry file is not the one that was signed",
    ),
    "a tool removed from the registry": (replayed, "tool:sgn_two was signed but is missing"),
    "a guide in the registry": (other_text, "tool:sgn_one differs from the signed version"),
    "a plugin in the registry": (other_plugin, "plugin:fab-enforcer:main differs from the signed version"),
    "the statement": (in_statement(lambda s: s["predicate"].update(more=1)), ALTERED),
    "a tool's hash": (in_statement(forge("tool:sgn_one", "packageSha256")), ALTERED),
    "a plugin's hash": (in_statement(forge("plugin:", "packageSha256")), ALTERED),
    "the SBOM": (in_statement(altered_sbom), ALTERED),
    "a signed wrong hash of a tool": (
        in_statement(forge("tool:sgn_one", "codeSha256"), *BOTH),
        "the statement does not describe this registry: tool:sgn_one differs from the signed version",
    ),
    "a signed wrong hash of a plugin": (
        in_statement(forge("plugin:", "sha256"), *BOTH),
        "the statement does not describe this registry: plugin:fab-enforcer:main differs from the signed "
        "version",
    ),
    "a signed wrong hash of the registry": (
        in_statement(forge("registry:", "sha256"), *BOTH),
        "the registry file is not the one that was signed",
    ),
    "a subject too few": (in_statement(lambda s: s["subject"].pop(), *BOTH), "main was not signed"),
    "a subject too many": (
        in_statement(lambda s: s["subject"].append({"name": "tool:x", "digest": {"sha256": "0"}}), *BOTH),
        "tool:x was signed but is missing",
    ),
    "a subject twice": (
        in_statement(lambda s: s["subject"].append(s["subject"][0]), *BOTH), "two subjects called",
    ),
    "a subject without digest": (
        in_statement(lambda s: s["subject"][0].update(digest={}), *BOTH), "without a digest",
    ),
    "another predicate type": (
        in_statement(lambda s: s.update(predicateType="https://slsa.dev/provenance/v1"), *BOTH),
        "its predicate type is not urn:jackfield:registry:1",
    ),
    "another statement type": (
        in_statement(lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"), *BOTH),
        "is not an in-toto statement",
    ),
    "a signed statement without SBOM": (
        in_statement(lambda s: s["predicate"].pop("sbom"), *BOTH), "contains no CycloneDX SBOM",
    ),
    "an expired statement": (
        in_statement(lambda s: s["predicate"].update(expires="2020-01-01T00:00:00Z"), *BOTH),
        "the signatures expired at 2020-01-01",
    ),
    "an expiry that is no time": (
        in_statement(lambda s: s["predicate"].update(expires="soon"), *BOTH), "an expiry that is not a time",
    ),
    "a payload that is not JSON": (
        lambda d: d.replace_payload(b"hello", BOTH), "the signed statement: not valid JSON",
    ),
    "a duplicate key in the statement": (duplicate_in_statement, "'predicateType' occurs more than once"),
    "another payload type": (
        in_envelope(lambda e: e.update(payloadType="application/json")),
        "the payload type is not application/vnd.in-toto+json",
    ),
    "a payload type that is signed": (
        lambda d: d.replace_payload(b"{}", BOTH, kind="text/plain"), "the payload type is not",
    ),
    "an unknown key id": (
        in_envelope(lambda e: e["signatures"][1].update(keyid="f" * 64)),
        "the signature of key ffffffffffffffff, which is not a trusted key",
    ),
    "the key id of another": (
        in_envelope(lambda e: e["signatures"][1].update(keyid=e["signatures"][0]["keyid"])), ALTERED,
    ),
    "signatures swapped": (in_envelope(swap), "0 of 2 required trusted keys signed"),
    "one bit of each signature": (in_envelope(flip), "0 of 2 required trusted keys signed"),
    "a short signature": (in_envelope(lambda e: e["signatures"][0].update(sig="AAAA")), "1 of 2 required"),
    "one signature twice": (in_envelope(twice), "a second signature of alice; each key counts once"),
    "one signature removed": (in_envelope(lambda e: e["signatures"].pop()), "1 of 2 required trusted keys"),
    "no signatures": (in_envelope(lambda e: e.update(signatures=[])), "the envelope has no signatures"),
    "65 signatures": (
        in_envelope(lambda e: e.update(signatures=e["signatures"][:1] * 65)), "more than 64 signatures",
    ),
    "a key that is not trusted": (of_mallory, "which is not a trusted key"),
    "a signature in Bob's name": (as_bob, f"the signature of bob {ALTERED}"),
    "no key id and an untrusted key": (
        of_nobody, "a signature without a key id, which no trusted key made",
    ),
    "truncated JSON": (written(lambda data: data[: len(data) // 2]), "the envelope: not valid JSON"),
    "an empty envelope": (written(lambda _: b""), "the envelope: not valid JSON"),
    "an envelope that is a list": (written(lambda _: b"[]"), "the envelope: not a JSON object"),
    "an envelope that is not UTF-8": (written(lambda data: b"\xff" + data), "the envelope: not UTF-8"),
    "deep nesting": (written(lambda _: b"[" * 100_000), "the envelope: not valid JSON"),
    "an oversized envelope": (written(lambda data: data + b" " * MAX_ENVELOPE_BYTES), "larger than"),
    "a duplicate key in the envelope": (duplicate_key, "'payloadType' occurs more than once"),
    "base64 with spare bits": (in_envelope(loose_base64), "signature: not canonical base64"),
    "base64 with a line break": (in_envelope(spaced_base64), "payload: not base64"),
    "a signature that is a number": (in_envelope(lambda e: e["signatures"][0].update(sig=1)), "not base64"),
    "a link to nothing": (lambda d: d.link_envelope("missing"), "cannot be read"),
    "a link to itself": (lambda d: d.link_envelope(d.envelope.name), "cannot be read"),
    "a link to a device": (lambda d: d.link_envelope("/dev/zero"), "not a regular file"),
    "a named pipe": (lambda d: d.pipe(), "not a regular file"),
    "a folder": (as_folder, "not a regular file"),
    "a trusted key that was removed": (
        lambda d: d.public("bob").unlink(), "the file of a trusted key does not exist",
    ),
    "a trusted key that was replaced": (
        lambda d: shutil.copy(d.public("mallory"), d.public("bob")), "1 of 2 required trusted keys signed",
    ),
    "the same trusted key twice": (
        lambda d: shutil.copy(d.public("alice"), d.public("bob")), "different",
    ),
    "a private key as trusted key": (
        lambda d: shutil.copy(d.private("bob"), d.public("bob")), "this is a private key",
    ),
    "a damaged trusted key": (lambda d: d.public("bob").write_text("---"), "not a public key in PEM format"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERING)
def test_tampering_is_refused_with_its_reason(deployment: SignedDeployment, what: str) -> None:
    tamper, reason = TAMPERING[what]
    tamper(deployment)

    code, output = verify(deployment)
    assert code == 1, output
    assert reason in output
    with pytest.raises(SignatureError) as refused:
        deployment.required().load()
    assert reason in str(refused.value)


def test_a_worthless_signature_beside_enough_good_ones_changes_nothing(deployment: SignedDeployment) -> None:
    made = deployment.signature("mallory", deployment.signed_bytes())
    deployment.edit(lambda document: document["signatures"].insert(0, made))
    code, output = verify(deployment)
    assert code == 0, output
    assert "ignored: the signature of key" in output
    assert deployment.required().load()


def test_one_signature_meets_a_threshold_of_one(deployment: SignedDeployment) -> None:
    deployment.edit(lambda document: document["signatures"].pop())
    assert verify(deployment, "--threshold=1")[0] == 0
    assert deployment.required(threshold=1).load()
    assert verify(deployment, "--threshold=2")[0] == 1
    code, output = verify(deployment, "--threshold=3")
    assert (code, "but only 2 are given" in output) == (1, True)


def test_a_signature_without_key_id_and_in_url_safe_base64_counts(deployment: SignedDeployment) -> None:
    def change(document: dict[str, Any]) -> None:
        for each in document["signatures"]:
            del each["keyid"]
            each["sig"] = each["sig"].replace("+", "-").replace("/", "_")
        document["payload"] = document["payload"].replace("+", "-").replace("/", "_")

    deployment.edit(change)
    code, output = verify(deployment)
    assert code == 0, output


def test_a_development_host_says_so_and_continues(
    deployment: SignedDeployment, caplog: pytest.LogCaptureFixture
) -> None:
    deployment.envelope.unlink()
    with caplog.at_level(logging.WARNING):
        assert deployment.required("development").load().tools
    assert "the registry is not signed" in caplog.text
    assert "a production host with these settings would not start" in caplog.text


CHANGES_WHILE_RUNNING = [
    "no envelope", "one byte of the registry", "a guide in the registry", "a tool's hash",
    "one signature removed", "a trusted key that was removed", "a trusted key that was replaced",
    "an expired statement",
]  # fmt: skip


@pytest.mark.parametrize("what", CHANGES_WHILE_RUNNING)
def test_tampering_while_a_host_runs_is_found_and_its_repair_too(
    deployment: SignedDeployment, signed: SignedDeployment, what: str
) -> None:
    required = deployment.required()
    required.load()
    assert required.is_current()
    required.check_again()

    tamper, reason = TAMPERING[what]
    tamper(deployment)
    assert not required.is_current()
    for _ in range(2):
        with pytest.raises(SignatureError, match=reason):
            required.check_again()

    for path in (signed.registry, signed.envelope, signed.public("bob")):
        shutil.copy(path, deployment.folder)
    required.check_again()
    assert required.is_current()


def test_the_next_release_may_lie_beside_a_running_host_if_it_is_signed(deployment: SignedDeployment) -> None:
    required = deployment.required()
    required.load()
    other_text(deployment)
    with pytest.raises(SignatureError):
        required.check_again()
    for name in BOTH:
        sign_registry(deployment.registry, read_signer(deployment.private(name), None))
    required.check_again()
    # The keys of the registry that is served count too, also when only the new one has the new keys.
    deployment.public("bob").unlink()
    with pytest.raises(SignatureError, match="a trusted key does not exist"):
        required.check_again()


def test_signatures_that_expire_while_a_host_runs_stop_counting(
    deployment: SignedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import datetime as real

    import jackfield.signatures.requirement as requirement
    import jackfield.signatures.verification as verification

    later = "2999-01-01T00:00:00Z"
    deployment.edit_statement(lambda s: s["predicate"].update(expires=later), BOTH)
    required = deployment.required()
    required.load()
    assert required.is_current()

    class Future(real):
        @classmethod
        def now(cls, tz: Any = None) -> Self:
            return cls.fromisoformat("3000-01-01T00:00:00+00:00")

    monkeypatch.setattr(requirement, "datetime", Future)
    monkeypatch.setattr(verification, "datetime", Future)
    assert not required.is_current()
    with pytest.raises(SignatureError, match="the signatures expired at 2999"):
        required.check_again()
