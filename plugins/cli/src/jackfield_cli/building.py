"""`jackfield build`, `check` and `diff`: make a registry, see whether it is current, compare two."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import (
    as_json,
    load_snapshot,
    no_import,
    print_json,
    with_registry,
    with_settings,
)
from jackfield_cli.report import echo, print_findings

if TYPE_CHECKING:
    from jackfield.contract.snapshot import Snapshot
    from jackfield.settings import Settings
    from jackfield_builder.changes import Change
    from jackfield_builder.pipeline import Built

_NAMED_AT_MOST = 3
"""More tools than these are counted rather than named."""


@click.command()
@with_settings
@no_import
@as_json
def build(settings: Settings, no_import: bool, as_json: bool) -> None:
    """Discover installed tools, check them all, and freeze them into the registry.

    Exits with 1 and writes nothing when any tool has an error.
    """
    from jackfield_builder import freeze
    from jackfield_builder.pipeline import build as run

    _refuse_other_kinds(settings.registry)
    built = run(settings, import_handlers=not no_import)
    replaced = None
    if built.snapshot:
        _refuse_other_files(settings.registry)
        try:
            replaced = freeze.write(built.snapshot, settings.registry)
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
    """Check that the registry still matches what is installed; write nothing.

    Exits with 1 when a tool has an error or the registry is not up to date.
    """
    from jackfield.contract.snapshot import Snapshot, SnapshotError
    from jackfield_builder.diff import compare
    from jackfield_builder.pipeline import build as run

    built = run(settings, import_handlers=not no_import)
    changes: list[Change] = []
    reason = ""
    try:
        frozen = Snapshot.load(settings.registry)
        if built.snapshot and frozen.content_hash != built.snapshot.content_hash:
            reason = f"{settings.registry} is not up to date, run `jackfield build`"
            changes = compare(frozen, built.snapshot)
    except SnapshotError as error:
        reason = str(error)
    current = built.snapshot is not None and not reason
    if as_json:
        print_json(
            {**_summary(built), "upToDate": current, "changes": [_change(change) for change in changes]}
        )
    else:
        print_findings(built.findings)
        for change in changes:
            echo(f"  {_sentence(change)}", err=True)
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
    help="Exit with 1 when a tool breaks its callers without the bump that asks for.",
)
@with_registry
@as_json
def diff(settings: Settings, before: Path | None, after: Path | None, strict: bool, as_json: bool) -> None:
    """Compare two registry files in product terms.

    Says what was added, removed and changed from A to B, and which semver bump each change asks of its tool.
    B is the registry unless it is given, and A the one that the last build replaced.

    Exits with 0 whatever changed, unless --strict is given.
    """
    from jackfield_builder.diff import compare, unannounced

    old, new = (
        load_snapshot(before or _replaced(settings.registry)),
        load_snapshot(after or settings.registry),
    )
    changes = compare(old, new)
    broken = unannounced(old, new)
    if as_json:
        print_json(
            {
                "from": old.version,
                "to": new.version,
                "changes": [_change(change) for change in changes],
                "unannounced": broken,
            }
        )
    else:
        echo(f"{old.version} -> {new.version}")
        for change in changes:
            echo(f"  {_sentence(change)}")
        if not changes:
            echo("  no difference that a session could notice")
        for tool_id, sentence in broken.items() if strict else ():
            echo(click.style(f"{tool_id}: {sentence}", fg="red"), err=True)
    sys.exit(1 if strict and broken else 0)


def _replaced(registry: Path) -> Path:
    """The registry that the last build replaced."""
    from jackfield.contract.snapshot import previous

    path = previous(registry)
    if not path.exists():
        raise click.ClickException(
            f"{path}: no build has replaced a registry here yet; name the file to compare with"
        )
    return path


def _refuse_other_kinds(path: Path) -> None:
    """Before anything looks into it: a pipe would be waited for, and a device would be replaced by a file."""
    if path.exists() and not path.is_file():
        raise _left_alone(path)


def _refuse_other_files(path: Path) -> None:
    """A registry may be replaced, also a damaged one; what is plainly something else may not."""
    try:
        other = _is_something_else(path.read_bytes())
    except OSError:
        return
    if other:
        raise _left_alone(path)


def _left_alone(path: Path) -> click.ClickException:
    return click.ClickException(
        f"{path} is not a registry and is left alone; name another file with --registry"
    )


def _is_something_else(content: bytes) -> bool:
    import json

    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return bool(content.strip()) and not content.lstrip().startswith(b"{")
    return not isinstance(document, dict) or (bool(document) and "formatVersion" not in document)


def _summary(built: Built) -> dict[str, Any]:
    snapshot = built.snapshot
    return {
        "version": snapshot.version if snapshot else None,
        "tools": {tool_id: tool.manifest.version for tool_id, tool in snapshot.tools.items()}
        if snapshot
        else {},
        "findings": [finding.to_wire() for finding in built.findings],
    }


def _print_built(built: Built, path: Path) -> None:
    if built.snapshot is None:
        return
    tools = built.snapshot.tools
    width = max(len(tool_id) for tool_id in tools)
    for tool_id, tool in tools.items():
        owner = f"{tool.distribution} {tool.distribution_version}"
        echo(f"  {tool_id:<{width}}  {tool.manifest.version:<8}  {click.style(owner, dim=True)}")
    off = sorted({f"{entry.name} ({entry.distribution.name})" for entry in built.discovery.switched_off})
    if off:
        echo(f"switched off: {', '.join(off)}")
    number = "1 tool" if len(tools) == 1 else f"{len(tools)} tools"
    echo(
        f"registry {click.style(built.snapshot.version, bold=True, fg='green')}, {number}, written to {path}"
    )


def _print_replaced(old: Snapshot, new: Snapshot) -> None:
    """A build in another environment than the last one loses tools, and whoever ran it should notice."""
    lost, won = sorted({*old.tools} - {*new.tools}), sorted({*new.tools} - {*old.tools})
    parts = [f"{_named(won)} added"] if won else []
    parts += [click.style(f"{_named(lost)} no longer there", fg="yellow")] if lost else []
    told = "; ".join(parts) or "the same tools"
    echo(f"replaces {old.version}: {told}; `jackfield diff` shows what changed")


def _named(tools: list[str]) -> str:
    return ", ".join(tools) if len(tools) <= _NAMED_AT_MOST else f"{len(tools)} tools"


def _change(change: Change) -> dict[str, Any]:
    bump = change.bump.name.lower() if change.bump else None
    return {"subject": change.subject or None, "what": change.what, "bump": bump}


def _sentence(change: Change) -> str:
    subject = f"{click.style(change.subject, bold=True)}: " if change.subject else ""
    bump = f" ({change.bump.name.lower()})" if change.bump else ""
    breaking = click.style(" breaking", fg="red") if bump == " (major)" else ""
    return f"{subject}{change.what}{bump}{breaking}"
