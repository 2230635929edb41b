"""The recipes: every settings example is accepted, and every shell command runs with its status."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from process_environment import clean_environ

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "recipes.md").read_text("utf-8")
RECIPES = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
PREPARATIONS = {"Back up and restore": "jackfield call format_datetime && jackfield kb add --sample"}
"""What a deployment has done before it follows a recipe."""
FAILS = "# exit status 1"
SECONDS = 120


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(text: str) -> str:
    """Return the commands of a recipe, which stop at the first one with a different status than it says."""
    lines = "\n".join(blocks(text, "sh")).splitlines()
    refused = "if {}; then exit 9; fi"
    return "\n".join(
        ["set -e", *(refused.format(each.partition(FAILS)[0]) if FAILS in each else each for each in lines)]
    )


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with this environment's `jackfield`, away from the settings of the machine."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**clean_environ(), "PATH": path, "JACKFIELD_LOCAL_SERVERS": "none"}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The registry of all installed tools."""
    folder = tmp_path_factory.mktemp("registry")
    built = shell("jackfield build", folder)
    assert built.returncode == 0, built.stdout
    return folder / "tool_registry.json"


@pytest.mark.parametrize("title", [title for title, text in RECIPES.items() if blocks(text, "toml")])
def test_the_settings_of_a_recipe_are_accepted(title: str, tmp_path: Path) -> None:
    (tmp_path / "jackfield.toml").write_text("\n".join(blocks(RECIPES[title], "toml")), "utf-8")
    shown = shell("jackfield settings", tmp_path)
    assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize("title", [title for title, text in RECIPES.items() if blocks(text, "sh")])
def test_the_commands_of_a_recipe_run(title: str, registry: Path, tmp_path: Path) -> None:
    if "sqlite3 " in RECIPES[title] and shell("command -v sqlite3", tmp_path).returncode:
        pytest.skip("sqlite3 is not installed")
    (tmp_path / "tool_registry.json").write_bytes(registry.read_bytes())
    if settings := blocks(RECIPES[title], "toml"):
        (tmp_path / "jackfield.toml").write_text("\n".join(settings), "utf-8")
    if preparation := PREPARATIONS.get(title):
        prepared = shell(preparation, tmp_path)
        assert prepared.returncode == 0, prepared.stdout + prepared.stderr
    done = shell(commands(RECIPES[title]), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("Ask for confirmation for one tool only", "This call needs confirmation"),
        ("Limit what images cost", "It costs about $0.20, over the limit of $0.05."),
        ("See why a call was refused", "modes refused"),
    ],
)
def test_a_recipe_for_a_refusal_shows_the_refusal_that_it_describes(
    title: str, said: str, registry: Path, tmp_path: Path
) -> None:
    (tmp_path / "tool_registry.json").write_bytes(registry.read_bytes())
    (tmp_path / "jackfield.toml").write_text("\n".join(blocks(RECIPES[title], "toml")), "utf-8")
    done = shell(commands(RECIPES[title]), tmp_path)
    assert said in done.stdout + done.stderr
