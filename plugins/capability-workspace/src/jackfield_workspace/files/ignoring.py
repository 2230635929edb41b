"""What .gitignore files leave out, each for its own folder; the deepest one decides."""

from __future__ import annotations

from jackfield import ToolError
from pathspec import GitIgnoreSpec

from jackfield_workspace.files import tree

FILE = ".gitignore"
_MOST_BYTES = 256 * 1024


class Ignored:
    """The patterns that hold in one folder: its own, and those of the folders above it."""

    def __init__(self, specs: tuple[tuple[int, GitIgnoreSpec], ...] = ()) -> None:
        self._specs = specs

    def within(self, here: int, path: str) -> Ignored:
        """The patterns one folder further down, whose own file is read if it has one."""
        try:
            data, _ = tree.read_file(here, FILE, FILE, _MOST_BYTES)
        except (OSError, ToolError):
            return self
        spec = _spec(data.decode("utf-8", "replace").splitlines())
        return Ignored(((len(path) + 1 if path else 0, spec), *self._specs))

    def leaves_out(self, path: str, *, folder: bool) -> bool:
        """Whether an entry is ignored, where the folders on the way to it are not."""
        for begins, spec in self._specs:
            verdict = spec.check_file(f"{path[begins:]}/" if folder else path[begins:]).include
            if verdict is not None:
                return bool(verdict)
        return False


def _spec(lines: list[str]) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(lines, backend="re2")
    except ValueError:
        # One line that makes no sense must not switch off the others.
        return GitIgnoreSpec.from_lines([line for line in lines if _makes_sense(line)], backend="re2")


def _makes_sense(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line], backend="re2")
    except ValueError:
        return False
    return True
