"""`jackfield sign`, `jackfield verify` and `jackfield keys`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import as_json, with_registry
from jackfield_cli.terminal import echo, pip, print_json, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackfield.settings import Settings
    from jackfield.signatures.public_keys import PublicKey
    from jackfield.signatures.verification import Verification
    from jackfield_builder.signatures.signers import Signer

_FILE = click.Path(path_type=Path)

_experiments = click.option(
    "--experiments", "of_experiments", is_flag=True, help="Use the experiments file instead of the registry."
)

MAX_SHOWN = 10


@click.command()
@click.option("--key", "key_file", type=_FILE, metavar="FILE", help="Your private key, in PEM format.")
@click.option(
    "--public-key",
    metavar="FILE",
    help="Sign with the command in `sign_command` instead of a private key; FILE is its public key.",
)
@click.option(
    "--expires",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    metavar="TIME",
    help="When the signatures expire (UTC); can be set only with the first signature.",
)
@_experiments
@with_registry
@as_json
def sign(
    settings: Settings,
    key_file: Path | None,
    public_key: str | None,
    *,
    expires: datetime | None,
    of_experiments: bool,
    as_json: bool,
) -> None:
    """Sign the registry: write its envelope, or add your signature to it.

    The signed statement contains the hashes of the registry file and of every tool and plugin, and a
    CycloneDX bill of materials of the installed packages. The passphrase of the key comes from the
    environment variable JACKFIELD_SIGNING_PASSPHRASE.
    """
    with reported():
        from jackfield_builder.signatures.signed_registry import sign_registry

        signer = signer_of(settings, key_file, public_key)
        until = expires.replace(tzinfo=UTC) if expires else None
        if of_experiments:
            _sign_experiments(settings, signer, until, as_json=as_json)
            return
        done = sign_registry(settings.registry, signer, expires=until)
    if as_json:
        print_json({**done._asdict(), "path": str(done.path), "key": done.key.key_id})
        return
    if done.replaced:
        echo("The existing envelope was for a different registry and has been replaced.", err=True)
    if done.unlike:
        echo(
            "Your environment differs from the one in the statement that others signed. Check these "
            "differences:",
            err=True,
        )
        for line in done.unlike[:MAX_SHOWN]:
            echo(f"  {printable(line)}", err=True)
        if len(done.unlike) > MAX_SHOWN:
            echo(f"  and {len(done.unlike) - MAX_SHOWN} more", err=True)
    echo(f"{done.path}: {done.key.name} signed registry {done.version}")
    echo(f"  signatures  {done.signatures}")
    echo(f"  SBOM        {done.components} components")
    echo(f"  key id      {done.key.key_id}")


def _sign_experiments(settings: Settings, signer: Signer, expires: datetime | None, *, as_json: bool) -> None:
    from jackfield_builder.signatures.signed_experiments import sign_experiments

    done = sign_experiments(experiments_path(settings), signer, expires=expires)
    if as_json:
        print_json({**done._asdict(), "path": str(done.path), "key": done.key.key_id})
        return
    echo(f"{done.path}: {done.key.name} signed version {done.version} of the experiments")
    echo(f"  signatures  {done.signatures}")
    echo(f"  key id      {done.key.key_id}")


def experiments_path(settings: Settings) -> Path:
    """Return the experiments file of a deployment."""
    if settings.experiments is None:
        raise click.UsageError(
            "this deployment has no experiments; set `experiments` to the path of the experiments file"
        )
    return settings.experiments


def signer_of(settings: Settings, key_file: Path | None, public_key: str | None) -> Signer:
    """Return the signer: a private key, or `sign_command`."""
    from jackfield.signatures.public_keys import read_public_key
    from jackfield_builder.signatures.signers import PASSPHRASE, CommandSigner, read_signer

    if key_file and public_key:
        raise click.UsageError("use --key or --public-key, not both")
    if key_file:
        return read_signer(key_file, os.environ.get(PASSPHRASE))
    if not public_key:
        raise click.UsageError("give --key FILE, or --public-key FILE with the setting `sign_command`")
    if not settings.sign_command:
        raise click.UsageError("--public-key needs the setting `sign_command`")
    return CommandSigner(read_public_key(public_key), settings.sign_command)


@click.command()
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="FILE",
    help="A public key to trust instead of `trusted_keys`; repeatable.",
)
@click.option("--threshold", type=click.IntRange(1), help="How many different keys must have signed.")
@click.option("--sbom", type=_FILE, metavar="FILE", help="Write the signed bill of materials to FILE.")
@_experiments
@with_registry
@as_json
def verify(
    settings: Settings,
    keys: tuple[str, ...],
    threshold: int | None,
    *,
    sbom: Path | None,
    of_experiments: bool,
    as_json: bool,
) -> None:
    """Verify the registry's signatures offline.

    By default, the keys and the threshold come from `trusted_keys` and `signature_threshold`; if you give
    --key, the threshold is 1 by default. The exit status is 1 if the signatures do not meet the requirement.
    """
    sources = keys or settings.trusted_keys
    if not sources:
        raise click.UsageError("there is no trusted key; give --key FILE, or set `trusted_keys`")
    needed = threshold or (1 if keys else settings.signature_threshold)
    if of_experiments and sbom:
        raise click.UsageError("--sbom is for the registry; experiments have no bill of materials")
    path = experiments_path(settings) if of_experiments else settings.registry
    with reported():
        checked = (_verify_experiments if of_experiments else _verify)(path, sources, needed)
    if as_json:
        facts = [fact._asdict() for fact in checked.facts]
        signers = [{"name": each.name, "keyId": each.key_id} for each in checked.signers]
        print_json({"valid": not checked.problems, "signers": signers, "facts": facts})
    else:
        for fact in checked.facts:
            mark = {True: "yes", False: "NO", None: "-"}[fact.holds]
            echo(f"  {mark:<3}  {printable(fact.text)}")
        what = "do not use these experiments" if of_experiments else "do not serve this registry"
        verdict = f"is not met; {what}" if checked.problems else "is met"
        echo(f"{path}: the signature requirement {verdict}")
    if checked.problems:
        raise SystemExit(1)
    if sbom and checked.statement:
        import json

        sbom.write_text(json.dumps(checked.statement.predicate["sbom"], indent=2) + "\n", "utf-8")


def _verify(path: Path, sources: tuple[str, ...], threshold: int) -> Verification:
    from jackfield.contract.snapshot import read_registry
    from jackfield.signatures.dsse_envelope import envelope_path, read_envelope
    from jackfield.signatures.verification import verify as verify_envelope

    trusted = _trusted(sources, threshold)
    return verify_envelope(read_registry(path), path, read_envelope(envelope_path(path)), trusted, threshold)


def _verify_experiments(path: Path, sources: tuple[str, ...], threshold: int) -> Verification:
    from jackfield.experiments.definition import MAX_BYTES, ExperimentsError, ExperimentsFile
    from jackfield.experiments.signed_versions import UNSIGNED
    from jackfield.signatures.dsse_envelope import SignatureError, envelope_path, read_bounded, read_envelope
    from jackfield.signatures.verification import verify_experiments

    try:
        data = read_bounded(path, MAX_BYTES)
        version = ExperimentsFile.parse(data, str(path)).version
    except (FileNotFoundError, ExperimentsError) as error:
        raise SignatureError(str(error)) from None
    envelope = read_envelope(envelope_path(path), fix=UNSIGNED)
    return verify_experiments(data, version, envelope, _trusted(sources, threshold), threshold)


def _trusted(sources: tuple[str, ...], threshold: int) -> tuple[PublicKey, ...]:
    from jackfield.signatures.dsse_envelope import SignatureError
    from jackfield.signatures.public_keys import read_public_keys

    trusted = read_public_keys(sources)
    if len(trusted) < threshold:
        raise SignatureError(
            f"{threshold} different keys are required, but only {len(trusted)} "
            f"{'is' if len(trusted) == 1 else 'are'} given; add keys with --key or in `trusted_keys`"
        )
    return trusted


@click.group()
def keys() -> None:
    """Create keys for signing registries, or print the id of a key."""


@keys.command()
@click.argument("name", type=_FILE)
@click.option("--no-passphrase", is_flag=True, help="Write the private key unencrypted.")
def new(name: Path, no_passphrase: bool) -> None:
    """Create a private Ed25519 key, NAME.pem, and its public key, NAME.pub.pem.

    The private key is encrypted with the passphrase in JACKFIELD_SIGNING_PASSPHRASE, and only you can read
    the file. Existing files are never replaced.
    """
    with reported():
        from jackfield_builder.signatures.signers import PASSPHRASE, create_key_pair

        passphrase = None if no_passphrase else os.environ.get(PASSPHRASE)
        if not passphrase and not no_passphrase:
            raise click.UsageError(f"set {PASSPHRASE}, or give --no-passphrase")
        private, public = (name.with_name(f"{name.name}{end}") for end in (".pem", ".pub.pem"))
        key = create_key_pair(private, public, passphrase)
    echo(f"private key  {private}  (keep it secret)")
    echo(f"public key   {public}  (add it to trusted_keys)")
    echo(f"key id       {key.key_id}")


@keys.command(name="id")
@click.argument("public_key")
def key_id(public_key: str) -> None:
    """Print the id of a public key, as it appears in envelopes."""
    with reported():
        from jackfield.signatures.public_keys import read_public_key

        echo(read_public_key(public_key).key_id)


@contextmanager
def reported() -> Iterator[None]:
    """Print errors of registries and keys without a traceback."""
    from jackfield.contract.snapshot import SnapshotError

    try:
        yield
    except SnapshotError as error:
        raise click.ClickException(printable(str(error))) from None
    except ModuleNotFoundError as error:
        missing: Any = error.name
        raise click.ClickException(
            f"the package {missing} is missing; run `{pip()} install 'jackfield-cli[signing]'`"
        ) from None
