"""The files of one folder, a shell that runs in one, and the policy that asks before a file is changed.

Asking this plugin what it offers imports none of the libraries it works with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, PluginSettings, PolicyOffer, Services, Stage

if TYPE_CHECKING:
    from jackfield_workspace.consent.policy import FileConsent
    from jackfield_workspace.shell.shell import BashShell
    from jackfield_workspace.workspace import FolderWorkspace


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Files, and apart from them a shell: each is there only where its own table names a folder."""
    return [
        CapabilityOffer("workspace", _workspace, _no_workspace),
        CapabilityOffer("shell", _shell, _no_shell),
    ]


@hookimpl
def jackfield_policies() -> Iterable[PolicyOffer]:
    """Just before confirmation: what it vouches for is not asked about."""
    return [PolicyOffer("file_consent", Stage.SHAPE, 15, _consent)]


def _workspace(settings: PluginSettings, services: Services) -> FolderWorkspace:
    from jackfield_workspace.options import WorkspaceOptions
    from jackfield_workspace.workspace import FolderWorkspace

    return FolderWorkspace(WorkspaceOptions.of(settings), services.store)


def _no_workspace(settings: PluginSettings) -> str | None:
    from jackfield_workspace.options import WorkspaceOptions

    return WorkspaceOptions.unavailable(settings)


def _shell(settings: PluginSettings, services: Services) -> BashShell:  # noqa: ARG001
    from jackfield_workspace.options import ShellOptions
    from jackfield_workspace.shell.shell import BashShell

    return BashShell(ShellOptions.of(settings))


def _no_shell(settings: PluginSettings) -> str | None:
    from jackfield_workspace.options import ShellOptions

    return ShellOptions.unavailable(settings)


def _consent(settings: PluginSettings, services: Services) -> FileConsent:  # noqa: ARG001
    from jackfield_workspace.consent.policy import FileConsent

    return FileConsent(settings)
