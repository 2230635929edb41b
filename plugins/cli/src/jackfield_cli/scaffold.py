"""Creates a new tool package from the template."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
MAX_NAME = 64


class ScaffoldError(Exception):
    """A package that cannot be created; the message says why."""


def scaffold(name: str, parent: Path, taken: dict[str, str]) -> Path:
    """Render the template for a tool id; `taken` maps existing ids to their distributions."""
    tool_id = check_name(name)
    if tool_id in taken:
        raise ScaffoldError(f"the id {tool_id!r} is taken by {taken[tool_id]}; choose a different one")
    folder = parent / tool_id.replace("_", "-")
    create_folder(folder)
    values = {
        "__tool_id__": tool_id,
        "__tool_name__": tool_id.replace("_", "-"),
        "__ToolName__": "".join(word.capitalize() for word in tool_id.split("_")),
    }
    render_template("tool", folder, values)
    return folder


def check_name(name: str) -> str:
    """Return the id of a tool or family that a user named, with underscores."""
    tool_id = name.replace("-", "_")
    if not NAME.fullmatch(tool_id) or len(tool_id) > MAX_NAME:
        raise ScaffoldError(
            f"{name!r} is not a tool id: use lower-case letters, digits and single underscores, start with a "
            f"letter, and use at most {MAX_NAME} characters, e.g. book_table"
        )
    return tool_id


def create_folder(folder: Path) -> None:
    """Create the folder of a new package."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ScaffoldError(f"{folder} already exists; choose a different name or folder") from None
    except OSError as error:
        raise ScaffoldError(f"{folder}: {error.strerror}") from None


def scaffold_repository(folder: Path) -> None:
    """Add the files of a repository to a package: a script with checks, and a workflow that runs it."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    render_template("repository", folder, {"__distribution__": project["name"]}, keep_existing=True)


def render_template(name: str, folder: Path, values: dict[str, str], *, keep_existing: bool = False) -> None:
    """Write the files of a template, with the values in place of the placeholders."""
    for path, text in _template(resources.files("jackfield_cli").joinpath("template", name)):
        target = folder / _render(path, values)
        if keep_existing and target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_render(text, values), "utf-8")


def _template(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _template(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_text("utf-8")


def _render(text: str, values: dict[str, str]) -> str:
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text
