"""Files of one directory, a shell, and the policy `file_consent`.

The hooks import no third-party libraries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, PolicyOffer, Services, Stage

if TYPE_CHECKING:
    from jackfield_workspace.consent import FileConsent
    from jackfield_workspace.settings import FileConsentSettings, ShellSettings, WorkspaceSettings
    from jackfield_workspace.shell import BashShell
    from jackfield_workspace.workspace import FolderWorkspace


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Offer files and, separately, a shell; each is available only if its own table names a folder."""
    from jackfield_workspace.settings import ShellSettings, WorkspaceSettings

    return [
        CapabilityOffer("workspace", _workspace, WorkspaceSettings.unavailable, WorkspaceSettings),
        CapabilityOffer("shell", _shell, ShellSettings.unavailable, ShellSettings),
    ]


@hookimpl
def jackfield_policies() -> Iterable[PolicyOffer]:
    """Offer a policy that runs just before the confirmation policy, which skips calls with a waiver."""
    from jackfield_workspace.settings import FileConsentSettings

    return [PolicyOffer("file_consent", Stage.SHAPE, 15, _consent, settings=FileConsentSettings)]


def _workspace(settings: WorkspaceSettings, services: Services) -> FolderWorkspace:
    from jackfield_workspace.workspace import FolderWorkspace

    return FolderWorkspace(settings, services.store)


def _shell(settings: ShellSettings, services: Services) -> BashShell:  # noqa: ARG001
    from jackfield_workspace.shell import BashShell

    return BashShell(settings)


def _consent(settings: FileConsentSettings, services: Services) -> FileConsent:  # noqa: ARG001
    from jackfield_workspace.consent import FileConsent

    return FileConsent(settings)
