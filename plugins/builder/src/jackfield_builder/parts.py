"""The parts of a distribution: the import packages and modules it installs, as wheel or editable.

A wheel's RECORD lists its files. An editable install's RECORD lists only the file that leads to the source:
a `.pth` with folders, or a module with a map of names (setuptools, `editables`). The files of those folders
are then listed as a wheel built from them would have them. This module finds names only; what is hashed is
what an import finds under these names.
"""

from __future__ import annotations

import ast
import csv
import json
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.machinery import all_suffixes
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from jackfield.distributions import Metadata, normalised, spec_of

_SUFFIXES = tuple(sorted(all_suffixes(), key=len, reverse=True))
_METADATA = (".dist-info", ".egg-info", ".data")
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_NAMED_LIKE_THE_PROJECT = ("hatchling", "flit", "poetry", "uv_build")
"""Build backends that ship the package named like the project unless they are told otherwise."""

_NOT_SHIPPED = {
    "benchmark", "benchmarks", "build", "conftest", "dist", "doc", "docs", "example", "examples", "noxfile",
    "scripts", "setup", "tasks", "test", "tests", "tools", "venv",
}  # fmt: skip
"""What lies beside the packages in the folder of a project, and is in no wheel."""


def parts_of(name: str, metadata: Metadata | None, entry_modules: Iterable[str]) -> tuple[str, ...]:
    """The parts of a distribution, sorted; the modules its entry points name are always among them.

    Regular packages and modules are parts under their dotted names. A namespace package may belong to several
    distributions, so each package, module and file within it is a part of its own.
    """
    found = _parts(_files(name, metadata)) if metadata else set()
    if metadata and not found:
        # Without a RECORD, as system packages are, names are all there is to go by.
        names = [*_top_level(Path(metadata.folder)), normalised(name).replace("-", "_")]
        found |= {each for each in names if spec_of(each) is not None}
    for module in entry_modules:
        if not any(f"{module}.".startswith(f"{part}.") for part in found):
            found.add(_outermost(module))
    return tuple(sorted(found))


def _outermost(module: str) -> str:
    """The outermost regular package that holds a module."""
    names = module.split(".")
    for depth in range(1, len(names)):
        name = ".".join(names[:depth])
        spec = spec_of(name)
        if spec is not None and spec.origin is not None:
            return name
    return module


def _parts(files: Iterable[PurePosixPath]) -> set[str]:
    by_folder: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for file in files:
        by_folder[file.parts[:-1]].append(file.name)
    packages = {
        folder for folder, names in by_folder.items() if any(_module(name) == "__init__" for name in names)
    }
    spaces = {folder[:1] for folder, names in by_folder.items() if folder and any(map(_module, names))}
    parts = set()
    for folder, names in by_folder.items():
        if not all(name.isidentifier() for name in folder):
            continue
        outermost = next(
            (folder[:depth] for depth in range(1, len(folder) + 1) if folder[:depth] in packages), ()
        )
        if outermost:
            parts.add(".".join(outermost))
            continue
        for name in names:
            if module := _module(name):
                parts.add(".".join([*folder, module]))
            elif folder and folder[:1] in spaces:
                parts.add("/".join([*folder, name]))
    return parts


def _module(file: str) -> str:
    """The name of the module in a file; empty for another kind of file."""
    suffix = next((suffix for suffix in _SUFFIXES if file.endswith(suffix)), None)
    name = file.removesuffix(suffix) if suffix else ""
    return name if name.isidentifier() else ""


def _files(name: str, metadata: Metadata) -> Iterator[PurePosixPath]:
    """The files that a distribution installs, relative to the folder on the path; generously, if in doubt."""
    folder = Path(metadata.folder)
    listed = list(_recorded(folder))
    if folder.suffix == ".egg-info" or _is_editable(folder):
        for prefix, source in _sources(name, folder, listed):
            yield from filter(_counts, _below(prefix, source))
    else:
        yield from (file for file in listed if file.suffix != ".pth")


def _recorded(folder: Path) -> Iterator[PurePosixPath]:
    with suppress(OSError, UnicodeDecodeError, csv.Error):
        text = (folder / "RECORD").read_text("utf-8")
        for row in csv.reader(text.splitlines()):
            file = PurePosixPath(row[0].replace("\\", "/")) if row else PurePosixPath()
            if file.parts and not file.is_absolute() and _counts(file):
                yield file


def _counts(file: PurePosixPath) -> bool:
    return not any(
        part in {"..", "__pycache__"} or part.startswith(".") or part.endswith(_METADATA)
        for part in file.parts
    )


def _is_editable(folder: Path) -> bool:
    return bool(_direct_url(folder).get("dir_info", {}).get("editable"))


def _direct_url(folder: Path) -> dict[str, Any]:
    try:
        url = json.loads((folder / "direct_url.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return url if isinstance(url, dict) else {}


def _sources(name: str, folder: Path, listed: Iterable[PurePosixPath]) -> Iterator[tuple[str, Path]]:
    """Where an editable install's packages and modules lie, each with the path it is imported by."""
    if folder.suffix == ".egg-info":
        yield from _shipped(name, folder, folder.parent)
        return
    found = False
    for file in listed:
        path = folder.parent / file
        with suppress(OSError, UnicodeDecodeError, SyntaxError, ValueError):
            if path.suffix == ".pth":
                for line in filter(None, map(str.strip, path.read_text("utf-8").splitlines())):
                    if (place := folder.parent / line).is_dir():
                        found = True
                        yield from _shipped(name, folder, place)
            elif path.suffix == ".py":
                for each in _mapped(ast.parse(path.read_text("utf-8"))):
                    found = True
                    yield each
    if not found and (url := _direct_url(folder).get("url")):
        # A backend that leads to its source in a way of its own; the source itself is known all the same.
        source = Path(url2pathname(urlparse(url).path))
        yield from _shipped(name, folder, source / "src" if (source / "src").is_dir() else source)


def _mapped(module: ast.Module) -> Iterator[tuple[str, Path]]:
    """What a finder maps to paths: `MAPPING = {...}` (setuptools), `F.map_module(name, path)` (editables)."""
    for node in ast.walk(module):
        pairs: Iterable[Sequence[str]] = ()
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "MAPPING" for target in targets):
                pairs = list(ast.literal_eval(node.value).items())
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "map_module":
            pairs = [[ast.literal_eval(argument) for argument in node.args[:2]]]
        for name, path in pairs:
            source = Path(path)
            source = source.parent if source.name.startswith("__init__.") else source
            # setuptools maps a module to its path without the suffix.
            if not source.exists():
                source = source.with_suffix(".py")
            yield name.replace(".", "/") + ("" if source.is_dir() else source.suffix), source


def _below(prefix: str, source: Path) -> Iterator[PurePosixPath]:
    if source.is_file():
        yield PurePosixPath(prefix)
    elif source.is_dir():
        for path in sorted(source.iterdir()):
            if path.is_file():
                yield PurePosixPath(prefix, path.name)
            elif path.name.isidentifier() and path.name != "__pycache__":
                yield from _below(f"{prefix}/{path.name}", path)


def _shipped(name: str, folder: Path, place: Path) -> Iterator[tuple[str, Path]]:
    """What a wheel would have of a folder that an editable install puts on the path."""
    names = _shipped_names(name, folder, place)
    for path in sorted(place.iterdir()):
        if names is None or (_module(path.name) or path.name) in names:
            yield path.name, path


def _shipped_names(name: str, folder: Path, place: Path) -> Collection[str] | None:
    """The top-level names that a wheel would have; None for whatever lies in the folder."""
    if not any((place / file).is_file() for file in _PROJECT_FILES):
        return None
    if names := _top_level(folder):
        return names
    names = _configured(place)
    own = normalised(name).replace("-", "_")
    if not names and _backend(place).startswith(_NAMED_LIKE_THE_PROJECT):
        names = [each for each in (own, f"{own}.py") if (place / each).exists()]
    if names:
        return {Path(each).parts[0].removesuffix(".py").partition(".")[0] for each in names}
    return {_module(each.name) or each.name for each in place.iterdir()} - _NOT_SHIPPED


def _top_level(folder: Path) -> list[str]:
    """The names that setuptools leaves beside the metadata."""
    try:
        return (folder / "top_level.txt").read_text("utf-8").split()
    except (OSError, UnicodeDecodeError):
        return []


def _configured(project: Path) -> list[str]:
    """What the settings of the usual build backends say of the packages of a project."""
    tool = _pyproject(project).get("tool", {})
    hatch = tool.get("hatch", {}).get("build", {}).get("targets", {}).get("wheel", {})
    own = tool.get("setuptools", {})
    module = tool.get("uv", {}).get("build-backend", {}).get("module-name", ())
    listed = [
        hatch.get("packages", ()),
        hatch.get("only-include", ()),
        [each.get("include", "") for each in tool.get("poetry", {}).get("packages", ())],
        [tool.get("flit", {}).get("module", {}).get("name", "")],
        [module] if isinstance(module, str) else module,
        own.get("packages", ()) if isinstance(own.get("packages"), list) else (),
        own.get("py-modules", ()),
    ]
    return [each for names in listed for each in names if each]


def _backend(project: Path) -> str:
    return str(_pyproject(project).get("build-system", {}).get("build-backend", ""))


def _pyproject(project: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
