"""`jackfield build`, `check` and `diff`: create a registry, check that it is current, or compare two."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import (
    as_json,
    load_snapshot,
    no_import,
    with_registry,
    with_settings,
)
from jackfield_cli.terminal import echo, print_findings, print_json

if TYPE_CHECKING:
    from jackfield.contract.snapshot import Snapshot
    from jackfield.settings import Settings
    from jackfield_builder.pipeline import BuildResult
    from jackfield_builder.snapshot_diff import SnapshotChange

_MAX_NAMES = 3
"""The maximum number of tools listed by name; the others are only counted."""


@click.command()
@with_settings
@no_import
@as_json
def build(settings: Settings, no_import: bool, as_json: bool) -> None:
    """Discover the installed tools, check them, and freeze them into the registry.

    If a tool has an error, the exit status is 1 and nothing is written.
    """
    from jackfield_builder.pipeline import build as run
    from jackfield_builder.snapshot import write_snapshot

    check_regular_file(settings.registry)
    built = run(settings, import_handlers=not no_import)
    replaced = None
    if built.snapshot:
        check_replaceable(settings.registry)
        try:
            replaced = write_snapshot(built.snapshot, settings.registry)
        except OSError as error:
            raise click.ClickException(f"{settings.registry}: {error.strerror}") from None
    if as_json:
        print_json({**_summary(built), "registry": str(settings.registry) if built.snapshot else None})
    else:
        print_findings(built.findings)
        if built.snapshot:
            _print_built(built, settings.registry)
            if replaced:
                _print_replaced(replaced, built.snapshot)
        else:
            echo("No registry was written.", err=True)
    sys.exit(0 if built.snapshot else 1)


@click.command()
@with_settings
@no_import
@as_json
def check(settings: Settings, no_import: bool, as_json: bool) -> None:
    """Check that the registry matches the installed tools; write nothing.

    The exit status is 1 if a tool has an error or the registry is not up to date.
    """
    from jackfield.contract.snapshot import Snapshot, SnapshotError
    from jackfield_builder.pipeline import build as run
    from jackfield_builder.snapshot_diff import compare_snapshots

    built = run(settings, import_handlers=not no_import)
    changes: list[SnapshotChange] = []
    reason = ""
    try:
        frozen = Snapshot.load(settings.registry)
        if built.snapshot and frozen.content_hash != built.snapshot.content_hash:
            reason = f"{settings.registry} is not up to date; run `jackfield build`"
            changes = compare_snapshots(frozen, built.snapshot)
    except SnapshotError as error:
        reason = str(error)
    current = built.snapshot is not None and not reason
    if as_json:
        print_json(
            {**_summary(built), "upToDate": current, "changes": [_change_to_wire(each) for each in changes]}
        )
    else:
        print_findings(built.findings)
        for change in changes:
            echo(f"  {_describe_change(change)}", err=True)
        if reason:
            echo(click.style(reason, fg="red"), err=True)
        if current and built.snapshot:
            echo(f"{settings.registry} is up to date: {built.snapshot.version}")
    sys.exit(0 if current else 1)


@click.command()
@click.argument("before", metavar="[A]", required=False, type=click.Path(path_type=Path))
@click.argument("after", metavar="[B]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with status 1 if a tool was removed or has a breaking change without a major version bump.",
)
@with_registry
@as_json
def diff(settings: Settings, before: Path | None, after: Path | None, strict: bool, as_json: bool) -> None:
    """Compare two registry files.

    Shows what was added, removed and changed from A to B, and the semver bump that each change requires.
    B defaults to the current registry, and A to the one that the last build replaced.

    The exit status is 0 regardless of the changes, unless --strict is given.
    """
    from jackfield_builder.snapshot_diff import compare_snapshots, unannounced_breaks

    old, new = (
        load_snapshot(before or _previous_registry(settings.registry)),
        load_snapshot(after or settings.registry),
    )
    changes = compare_snapshots(old, new)
    broken = unannounced_breaks(old, new)
    if as_json:
        print_json(
            {
                "from": old.version,
                "to": new.version,
                "changes": [_change_to_wire(change) for change in changes],
                "unannounced": broken,
            }
        )
    else:
        echo(f"{old.version} -> {new.version}")
        for change in changes:
            echo(f"  {_describe_change(change)}")
        if not changes:
            echo("  no differences that affect sessions")
        for tool_id, reason in broken.items() if strict else ():
            echo(click.style(f"{tool_id}: {reason}", fg="red"), err=True)
    sys.exit(1 if strict and broken else 0)


def _previous_registry(registry: Path) -> Path:
    """Return the path of the registry that the last build replaced."""
    from jackfield.contract.snapshot import previous

    path = previous(registry)
    if not path.exists():
        raise click.ClickException(
            f"{path}: there is no previous registry yet; give the file to compare with"
        )
    return path


def check_regular_file(path: Path) -> None:
    """Reject a path that is not a regular file: reading a pipe blocks, and a device must not be replaced."""
    if path.exists() and not path.is_file():
        raise _not_a_registry(path)


def check_replaceable(path: Path) -> None:
    """Refuse to replace a file that is not a registry; a damaged registry may be replaced."""
    try:
        other = _is_other_content(path.read_bytes())
    except OSError:
        return
    if other:
        raise _not_a_registry(path)


def _not_a_registry(path: Path) -> click.ClickException:
    return click.ClickException(
        f"{path} is not a registry and was not changed; choose a different file with --registry"
    )


def _is_other_content(content: bytes) -> bool:
    import json

    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return bool(content.strip()) and not content.lstrip().startswith(b"{")
    return not isinstance(document, dict) or (bool(document) and "formatVersion" not in document)


def _summary(built: BuildResult) -> dict[str, Any]:
    snapshot = built.snapshot
    return {
        "version": snapshot.version if snapshot else None,
        "tools": {tool_id: tool.manifest.version for tool_id, tool in snapshot.tools.items()}
        if snapshot
        else {},
        "findings": [finding.to_wire() for finding in built.findings],
    }


def _print_built(built: BuildResult, path: Path) -> None:
    if built.snapshot is None:
        return
    tools, variants = built.snapshot.tools, built.snapshot.variants
    implementations = built.snapshot.implementations
    width = max(map(len, implementations))
    versions = max(len(tool.manifest.version) for tool in implementations.values())
    for name, tool in implementations.items():
        family = f"family {tool.family} in " if tool.family else ""
        owner = f"{family}{tool.distribution} {tool.distribution_version}"
        echo(f"  {name:<{width}}  {tool.manifest.version:<{versions}}  {click.style(owner, dim=True)}")
    off = sorted({f"{entry.name} ({entry.distribution.name})" for entry in built.discovery.switched_off})
    if off:
        echo(f"switched off: {', '.join(off)}")
    number = "1 tool" if len(tools) == 1 else f"{len(tools)} tools"
    if variants:
        number += ", 1 variant" if len(variants) == 1 else f", {len(variants)} variants"
    echo(
        f"registry {click.style(built.snapshot.version, bold=True, fg='green')}, {number}, written to {path}"
    )


def _print_replaced(old: Snapshot, new: Snapshot) -> None:
    """Print which tools differ, so that a build in the wrong environment is noticed."""
    from jackfield_builder.snapshot_diff import compare_snapshots

    subjects = {each.subject for each in compare_snapshots(old, new)}
    changed = sorted(subjects & {*old.tools} & {*new.tools})
    removed, added = sorted({*old.tools} - {*new.tools}), sorted({*new.tools} - {*old.tools})
    parts = [f"{_names(added)} added"] if added else []
    parts += [click.style(f"{_names(removed)} removed", fg="yellow")] if removed else []
    parts += [f"{_names(changed)} changed"] if changed else []
    what = "; ".join(parts) or "tools unchanged"
    echo(f"replaces {old.version}: {what}; `jackfield diff` shows the differences")


def _names(tools: list[str]) -> str:
    return ", ".join(tools) if len(tools) <= _MAX_NAMES else f"{len(tools)} tools"


def _change_to_wire(change: SnapshotChange) -> dict[str, Any]:
    bump = change.bump.name.lower() if change.bump else None
    return {"subject": change.subject or None, "what": change.what, "bump": bump}


def _describe_change(change: SnapshotChange) -> str:
    subject = f"{click.style(change.subject, bold=True)}: " if change.subject else ""
    bump = f" ({change.bump.name.lower()})" if change.bump else ""
    breaking = click.style(" breaking", fg="red") if bump == " (major)" else ""
    return f"{subject}{change.what}{bump}{breaking}"
