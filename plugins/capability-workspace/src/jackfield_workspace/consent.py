"""The policy `file_consent`: waives confirmation for changes to files that the user named."""

from __future__ import annotations

from collections.abc import Iterable

from jackfield import ToolError
from jackfield.confirmation_waiver import ConfirmationWaiverPolicy, WaiverDecision
from jackfield.governance import Call
from jackfield.settings import SettingsError

from jackfield_workspace.files.paths import Glob, Parts, parts_of
from jackfield_workspace.settings import FileConsentSettings
from jackfield_workspace.vocabulary import FileVocabulary


class FileConsent(ConfirmationWaiverPolicy):
    """Waives confirmation for files that the user named, and for files in trusted places."""

    name = "file_consent"
    tools = frozenset(("write_file", "edit_file"))

    def __init__(self, settings: FileConsentSettings) -> None:
        self._vocabulary = FileVocabulary(settings.verbs, settings.negations)
        self._trusted = _TrustedPaths(settings.trusted)

    def judge(self, call: Call) -> WaiverDecision:
        """Decide whether the user asked for a change to this file by name."""
        if call.args.get("overwrite"):
            # The tool replaces a file only with this argument, so no file is replaced without confirmation.
            return WaiverDecision(notes=("This replaces the whole file if it exists.",))
        try:
            parts = parts_of(str(call.args.get("path", "")))
        except ToolError:
            return WaiverDecision(notes=("This path is not in the workspace; the call will be rejected.",))
        if self._trusted.match(parts):
            return WaiverDecision("the path is trusted")
        if self._vocabulary.asks_for(call.turn.user_text, "/".join(parts)):
            return WaiverDecision("the user asked for a change to this file by name")
        return WaiverDecision(notes=("You did not ask for a change to this file by name.",))


class _TrustedPaths:
    """Glob patterns of paths that are changed without confirmation."""

    def __init__(self, patterns: Iterable[str]) -> None:
        try:
            self._globs = [Glob(pattern) for pattern in patterns]
        except ToolError as error:
            raise SettingsError(f"[policies.file_consent] trusted: {error.message}") from None

    def match(self, parts: Parts) -> bool:
        """Return whether a pattern matches a path."""
        for glob in self._globs:
            states = glob.start
            for name in parts:
                states = glob.step(states, name)
            if glob.accepts(states):
                return True
        return False
