"""The policy `file_consent`: vouches for changes to files that the user asked for by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jackfield import ToolError, ToolResponse
from jackfield.governance import Call, Check
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.settings import SettingsError

from jackfield_workspace.files.paths import Glob, Parts, parts_of
from jackfield_workspace.settings import FileConsentSettings
from jackfield_workspace.vocabulary import FileVocabulary

_TOOLS = ("write_file", "edit_file")


class FileConsent(Check):
    """Lets a file be written or edited without asking, or says on the card why the user is asked."""

    def __init__(self, settings: FileConsentSettings) -> None:
        self._vocabulary = FileVocabulary(settings.verbs, settings.negations)
        self._trusted = _Places(settings.trusted)

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """The tools that change files."""
        return tool.id in _TOOLS

    def before(self, call: Call) -> ToolResponse | None:
        """Vouch, or leave it to the confirmation policy, which is next."""
        reason, remark = self._judged(call.args, call.turn.said)
        if reason:
            call.vouch(reason)
            call.decide("file_consent", f"vouched: {reason}")
        else:
            call.remark(remark)
            call.decide("file_consent", "left to confirmation")
        return None

    def _judged(self, args: dict[str, Any], said: str) -> tuple[str, str]:
        """Why nobody has to be asked; else what the user is told."""
        if args.get("overwrite"):
            # The tool cannot replace anything without this argument, so nothing is replaced unasked.
            return "", "A file of that name would be replaced as a whole."
        try:
            parts = parts_of(str(args.get("path", "")))
        except ToolError:
            return "", "This is no path in the workspace, and will be refused."
        path = "/".join(parts)
        if self._trusted.hold(parts):
            return "files of that place are trusted", ""
        if self._vocabulary.asks_for(said, path):
            return "the user asked for a change to this file by its name", ""
        return "", "You did not ask for a change to this file by its name."


class _Places:
    """Where nobody is asked, as glob patterns."""

    def __init__(self, patterns: Iterable[str]) -> None:
        try:
            self._globs = [Glob(pattern) for pattern in patterns]
        except ToolError as error:
            raise SettingsError(f"[policies.file_consent] trusted: {error.message}") from None

    def hold(self, parts: Parts) -> bool:
        """Whether one of them fits a path."""
        for glob in self._globs:
            states = glob.start
            for name in parts:
                states = glob.step(states, name)
            if glob.accepts(states):
                return True
        return False
