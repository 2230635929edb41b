"""The packages and modules of a distribution, for every way of installation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from jackfield.distributions import Metadata, installed
from jackfield_builder.distribution_modules import distribution_modules


def metadata(site: Path, record: Sequence[str], editable: Path | None = None) -> Metadata:
    """Write the metadata of `fab-lib` with a RECORD of these files."""
    folder = site / "fab_lib-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "RECORD").write_text(
        "".join(f"{each},,\n" for each in [*record, "fab_lib-1.0.dist-info/METADATA"])
    )
    if editable:
        url = {"url": editable.as_uri(), "dir_info": {"editable": True}}
        (folder / "direct_url.json").write_text(json.dumps(url))
    return Metadata("1.0", str(folder))


def write(folder: Path, *files: str) -> Path:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")
    return folder


SHIPPED = ("fab_lib/__init__.py", "fab_lib/data/words.txt", "fab_one.py", "fab_space/inner/__init__.py")
PARTS = ("fab_lib", "fab_one", "fab_space.inner")


def test_the_modules_of_a_wheel_come_from_its_record(tmp_path: Path) -> None:
    record = [
        *SHIPPED,
        "../../bin/fab",
        "fab.pth",
        "fab_lib/__pycache__/x.pyc",
        "assets/logo.txt",
        "fab_space/w.txt",
    ]
    assert distribution_modules("fab-lib", metadata(tmp_path, record), []) == (
        *PARTS[:2],
        "fab_space.inner",
        "fab_space/w.txt",
    )


def test_the_modules_of_a_pth_install_come_from_its_source_folder(tmp_path: Path) -> None:
    source = write(
        tmp_path / "project", *(f"src/{each}" for each in SHIPPED), "src/fab_lib.egg-info/PKG-INFO"
    )
    found = metadata(tmp_path / "site", ["_fab_lib.pth"], source)
    (tmp_path / "site" / "_fab_lib.pth").write_text(f"{source / 'src'}\n")
    assert distribution_modules("fab-lib", found, []) == PARTS


@pytest.mark.parametrize(
    ("pyproject", "parts"),
    [
        ('[tool.hatch.build.targets.wheel]\npackages = ["fab_lib", "fab_one.py", "fab_space"]\n', PARTS),
        ('[build-system]\nbuild-backend = "flit_core.buildapi"\n', ("fab_lib",)),
        ('[build-system]\nbuild-backend = "own.backend"\n', PARTS),
    ],
)
def test_in_a_project_folder_only_modules_of_the_wheel_count(
    tmp_path: Path, pyproject: str, parts: tuple[str, ...]
) -> None:
    source = write(tmp_path / "project", *SHIPPED, "tests/test_it.py", "noxfile.py", "docs/conf.py")
    (source / "pyproject.toml").write_text(pyproject)
    found = metadata(tmp_path / "site", ["_fab_lib.pth"], source)
    (tmp_path / "site" / "_fab_lib.pth").write_text(f"{source}\n")
    assert distribution_modules("fab-lib", found, []) == parts


@pytest.mark.parametrize(
    "finder",
    [
        "MAPPING: dict[str, str] = {{'fab_lib': '{0}/lib', 'fab_one': '{0}/fab_one'}}\n",
        "F.map_module('fab_lib', '{0}/lib/__init__.py')\nF.map_module('fab_one', '{0}/fab_one.py')\n",
    ],
)
def test_the_modules_of_a_finder_install_come_from_its_mapping(tmp_path: Path, finder: str) -> None:
    source = write(tmp_path / "project", "lib/__init__.py", "fab_one.py", "other/__init__.py")
    found = metadata(tmp_path / "site", ["__editable___finder.py"], source)
    (tmp_path / "site" / "__editable___finder.py").write_text(finder.format(source))
    assert distribution_modules("fab-lib", found, []) == ("fab_lib", "fab_one")


def test_modules_of_entry_points_are_always_included(tmp_path: Path) -> None:
    found = metadata(tmp_path, ["fab_lib/__init__.py"])
    assert distribution_modules("fab-lib", found, ["fab_lib.inner", "fab_elsewhere"]) == (
        "fab_elsewhere",
        "fab_lib",
    )


def test_distributions_are_found_by_the_name_in_their_metadata(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write(
        first, "Fab.Old-1.0-py3.11.egg-info/PKG-INFO", "fab_lib-1.0.dist-info/METADATA", "fab_lib.egg-info/x"
    )
    write(second, "fab_lib-2.0.dist-info/METADATA", "fab_dev.egg-info/PKG-INFO")
    (second / "fab_dev.egg-info" / "PKG-INFO").write_text("Name: fab-dev\nVersion: 3.0\n")
    found = installed([str(first), str(second), str(tmp_path / "nowhere")])
    assert {name: each.version for name, each in found.items()} == {
        "fab-old": "1.0", "fab-lib": "1.0", "fab-dev": "3.0",
    }  # fmt: skip
    assert (found["fab-lib"].is_from_index, found["fab-dev"].is_from_index) == (True, False)
