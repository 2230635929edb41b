"""Finds the import packages and modules that a distribution installs from a wheel or as an editable install.

A wheel's RECORD lists its files. An editable install's RECORD lists only the file that leads to the source:
a `.pth` file with folders, or a module with a map of names (setuptools, `editables`). For those folders, this
module lists the files that a wheel built from them would contain. It finds names only; the files that are
hashed are those that an import finds under these names.
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
"""Build backends that by default ship the package with the name of the project."""

_NOT_SHIPPED = {
    "benchmark", "benchmarks", "build", "conftest", "dist", "doc", "docs", "example", "examples", "noxfile",
    "scripts", "setup", "tasks", "test", "tests", "tools", "venv",
}  # fmt: skip
"""Names in a project's folder, next to its packages, that no wheel contains."""


def distribution_modules(
    name: str, metadata: Metadata | None, entry_modules: Iterable[str]
) -> tuple[str, ...]:
    """Return the packages and modules of a distribution, sorted, always with those of its entry points.

    Regular packages and modules are listed by their dotted names. Several distributions can share a namespace
    package, so each package, module and file in it is listed separately.
    """
    found = _module_names(_files(name, metadata)) if metadata else set()
    if metadata and not found:
        # System packages have no RECORD, so only likely names can be tried.
        names = [*_top_level(Path(metadata.folder)), normalised(name).replace("-", "_")]
        found |= {each for each in names if spec_of(each) is not None}
    for module in entry_modules:
        if not any(f"{module}.".startswith(f"{known}.") for known in found):
            found.add(_outermost(module))
    return tuple(sorted(found))


def _outermost(module: str) -> str:
    """Return the outermost regular package that contains a module."""
    names = module.split(".")
    for depth in range(1, len(names)):
        name = ".".join(names[:depth])
        spec = spec_of(name)
        if spec is not None and spec.origin is not None:
            return name
    return module


def _module_names(files: Iterable[PurePosixPath]) -> set[str]:
    by_folder: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for file in files:
        by_folder[file.parts[:-1]].append(file.name)
    packages = {
        folder for folder, names in by_folder.items() if any(_module(name) == "__init__" for name in names)
    }
    namespaces = {folder[:1] for folder, names in by_folder.items() if folder and any(map(_module, names))}
    found = set()
    for folder, names in by_folder.items():
        if not all(name.isidentifier() for name in folder):
            continue
        outermost = next(
            (folder[:depth] for depth in range(1, len(folder) + 1) if folder[:depth] in packages), ()
        )
        if outermost:
            found.add(".".join(outermost))
            continue
        for name in names:
            if module := _module(name):
                found.add(".".join([*folder, module]))
            elif folder and folder[:1] in namespaces:
                found.add("/".join([*folder, name]))
    return found


def _module(file: str) -> str:
    """Return the name of the module in a file; empty if the file is not a module."""
    suffix = next((suffix for suffix in _SUFFIXES if file.endswith(suffix)), None)
    name = file.removesuffix(suffix) if suffix else ""
    return name if name.isidentifier() else ""


def _files(name: str, metadata: Metadata) -> Iterator[PurePosixPath]:
    """Yield the files of a distribution, relative to the folder on the path; doubtful files are included."""
    folder = Path(metadata.folder)
    listed = list(_recorded(folder))
    if folder.suffix == ".egg-info" or _is_editable(folder):
        for prefix, source in _sources(name, folder, listed):
            yield from filter(_is_relevant, _files_below(prefix, source))
    else:
        yield from (file for file in listed if file.suffix != ".pth")


def _recorded(folder: Path) -> Iterator[PurePosixPath]:
    with suppress(OSError, UnicodeDecodeError, csv.Error):
        text = (folder / "RECORD").read_text("utf-8")
        for row in csv.reader(text.splitlines()):
            file = PurePosixPath(row[0].replace("\\", "/")) if row else PurePosixPath()
            if file.parts and not file.is_absolute() and _is_relevant(file):
                yield file


def _is_relevant(file: PurePosixPath) -> bool:
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
    """Yield the packages and modules of an editable install: import path and location."""
    if folder.suffix == ".egg-info":
        yield from _shipped(name, folder, folder.parent)
        return
    found = False
    for file in listed:
        path = folder.parent / file
        with suppress(OSError, UnicodeDecodeError, SyntaxError, ValueError):
            if path.suffix == ".pth":
                for line in filter(None, map(str.strip, path.read_text("utf-8").splitlines())):
                    if (root := folder.parent / line).is_dir():
                        found = True
                        yield from _shipped(name, folder, root)
            elif path.suffix == ".py":
                for each in _mapped(ast.parse(path.read_text("utf-8"))):
                    found = True
                    yield each
    if not found and (url := _direct_url(folder).get("url")):
        # Other backends use their own mechanism, but direct_url.json names the source.
        source = Path(url2pathname(urlparse(url).path))
        yield from _shipped(name, folder, source / "src" if (source / "src").is_dir() else source)


def _mapped(module: ast.Module) -> Iterator[tuple[str, Path]]:
    """Yield the names that a finder maps to paths: `MAPPING = {...}` or `F.map_module(name, path)`.

    setuptools writes the first form, `editables` the second.
    """
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


def _files_below(prefix: str, source: Path) -> Iterator[PurePosixPath]:
    if source.is_file():
        yield PurePosixPath(prefix)
    elif source.is_dir():
        for path in sorted(source.iterdir()):
            if path.is_file():
                yield PurePosixPath(prefix, path.name)
            elif path.name.isidentifier() and path.name != "__pycache__":
                yield from _files_below(f"{prefix}/{path.name}", path)


def _shipped(name: str, folder: Path, root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the parts of an editable install's folder that a wheel would contain."""
    names = _shipped_names(name, folder, root)
    for path in sorted(root.iterdir()):
        if names is None or (_module(path.name) or path.name) in names:
            yield path.name, path


def _shipped_names(name: str, folder: Path, root: Path) -> Collection[str] | None:
    """Return the top-level names that a wheel would contain; None means everything in the folder."""
    if not any((root / file).is_file() for file in _PROJECT_FILES):
        return None
    if names := _top_level(folder):
        return names
    names = _configured_packages(root)
    own = normalised(name).replace("-", "_")
    if not names and _build_backend(root).startswith(_NAMED_LIKE_THE_PROJECT):
        names = [each for each in (own, f"{own}.py") if (root / each).exists()]
    if names:
        return {Path(each).parts[0].removesuffix(".py").partition(".")[0] for each in names}
    return {_module(each.name) or each.name for each in root.iterdir()} - _NOT_SHIPPED


def _top_level(folder: Path) -> list[str]:
    """Return the names in setuptools' top_level.txt."""
    try:
        return (folder / "top_level.txt").read_text("utf-8").split()
    except (OSError, UnicodeDecodeError):
        return []


def _configured_packages(project: Path) -> list[str]:
    """Return the packages that pyproject.toml configures for the usual build backends."""
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


def _build_backend(project: Path) -> str:
    return str(_pyproject(project).get("build-system", {}).get("build-backend", ""))


def _pyproject(project: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
