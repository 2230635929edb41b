"""Relative paths in a settings file are relative to its folder; all others to the working directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest
from jackfield.settings import PathText, Settings, merge_tables, parse_settings

PEM = "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----\n"


@dataclass(frozen=True)
class Server:
    folder: Path | None = None
    name: str = ""


@dataclass(frozen=True)
class Files:
    path: Path = Path("default.db")
    model: Annotated[str, PathText()] = ""
    more: tuple[Path, ...] = ()
    main: Server | bool = False
    servers: Mapping[str, Server] = field(default_factory=dict)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is not the working directory."""
    (tmp_path / "here").mkdir()
    (tmp_path / "etc").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "etc"


def written(file: Path, text: str) -> Path:
    file.write_text(text, "utf-8")
    return file


@pytest.mark.parametrize("named", ["relative", "absolute", "variable"])
def test_paths_are_relative_to_the_folder_of_the_file(elsewhere: Path, named: str) -> None:
    text = f'registry = "build/r.json"\nprompts = "/srv/p"\ntrusted_keys = ["ops.pem", {PEM!r}, "~/a.pem"]\n'
    file = written(elsewhere / "jackfield.toml", text.replace("'", '"'))
    if named == "variable":
        settings = Settings.load(None, {"JACKFIELD_CONFIG": str(file)})
    else:
        settings = Settings.load(file if named == "absolute" else Path("../etc/jackfield.toml"), {})
    assert settings.registry.resolve() == elsewhere / "build" / "r.json"
    assert settings.prompts == Path("/srv/p")
    key, pem, home = settings.trusted_keys
    assert (Path(key).resolve(), pem, home) == (elsewhere / "ops.pem", PEM, "~/a.pem")


def test_defaults_variables_and_options_are_relative_to_the_working_directory(elsewhere: Path) -> None:
    file = written(elsewhere / "jackfield.toml", 'experiments = "of_file.json"\nprompts = "of_file"\n')
    settings = Settings.load(file, {"JACKFIELD_PROMPTS": "of_variable"}, experiments="of_option.json")
    assert settings.registry == Path("tool_registry.json")
    assert settings.prompts == Path("of_variable")
    assert settings.experiments == Path("of_option.json")


@pytest.mark.parametrize("config", [None, Path("jackfield.toml"), Path("./jackfield.toml")])
def test_paths_in_a_file_in_the_working_directory_stay_as_they_are(
    elsewhere: Path, config: Path | None
) -> None:
    written(elsewhere.parent / "here" / "jackfield.toml", 'registry = "a.json"\n[stores.x]\npath = "a.db"\n')
    settings = Settings.load(config, {})
    assert settings.registry == Path("a.json")
    assert parse_settings(Files, settings.table("stores", "x"), "[stores.x]").path == Path("a.db")


def test_paths_of_plugins_are_relative_to_the_folder_of_the_file(elsewhere: Path) -> None:
    file = written(
        elsewhere / "jackfield.toml",
        "[stores.x]\n"
        'path = "a.db"\nmodel = "m.gguf"\nmore = ["b", "/srv/c"]\n'
        'main = {folder = "d", name = "n"}\nservers.one = {folder = "e"}\n',
    )
    table = Settings.load(file, {}).table("stores", "x")
    read = parse_settings(Files, table, "[stores.x]")
    assert read == Files(
        elsewhere / "a.db",
        str(elsewhere / "m.gguf"),
        (elsewhere / "b", Path("/srv/c")),
        Server(elsewhere / "d", "n"),
        {"one": Server(elsewhere / "e")},
    )
    # A model's settings come from the same file.
    merged = merge_tables(table, {"model": "other.gguf"})
    assert parse_settings(Files, merged, "[stores.x]").model == str(elsewhere / "other.gguf")


def test_a_default_path_of_a_plugin_is_relative_to_the_working_directory(elsewhere: Path) -> None:
    file = written(elsewhere / "jackfield.toml", '[stores.x]\nmodel = ""\n')
    read = parse_settings(Files, Settings.load(file, {}).table("stores", "x"), "[stores.x]")
    assert (read.path, read.model) == (Path("default.db"), "")
