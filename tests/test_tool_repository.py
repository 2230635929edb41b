"""The repository that `jackfield new-tool --repository` creates, with the checks of its CI workflow."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from jackfield_cli.family_scaffold import scaffold_family
from jackfield_cli.scaffold import scaffold_repository
from process_environment import clean_environ

ROOT = Path(__file__).parents[1]


def git(repository: Path, *arguments: str) -> None:
    author = ("-c", "user.name=Author", "-c", "user.email=author@example.org")
    subprocess.run(["git", *author, *arguments], cwd=repository, check=True, capture_output=True)


def check(repository: Path) -> subprocess.CompletedProcess[str]:
    """Run the script as the workflow does, with this checkout of Jackfield."""
    return subprocess.run(
        ["bash", "check.sh"],
        cwd=repository, env={**clean_environ(), "JACKFIELD": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return the repository of a family whose first version is released."""
    folder = scaffold_family("shop", ["get_order"], tmp_path, {})
    scaffold_repository(folder)
    git(folder, "init", "--initial-branch", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "The first version")
    git(folder, "tag", "v0.1.0")
    return folder


def limit_texts(repository: Path, length: int) -> None:
    """Commit a breaking change: texts that were accepted are now too long."""
    schema = repository / "src" / "jackfield_family_shop" / "schema.json"
    manifest = json.loads(schema.read_text("utf-8"))
    manifest["$defs"]["text"]["maxLength"] = length
    schema.write_text(json.dumps(manifest), "utf-8")
    git(repository, "commit", "-a", "-m", "Shorter texts")


def test_the_script_accepts_an_announced_break_and_rejects_an_unannounced_one(repository: Path) -> None:
    limit_texts(repository, 100)
    broken = check(repository)
    assert broken.returncode == 1, broken.stdout
    assert "10 passed" in broken.stdout
    assert "get_order: 0.1.0 -> 0.1.0, but this change requires a major bump" in broken.stderr

    project = repository / "pyproject.toml"
    project.write_text(project.read_text("utf-8").replace('version = "0.1.0"', 'version = "0.2.0"'), "utf-8")
    git(repository, "commit", "-a", "-m", "The second version")
    # The workflow of a release runs on its tag, which is not the last release.
    git(repository, "tag", "v0.2.0")
    announced = check(repository)
    assert announced.returncode == 0, announced.stderr
    assert "get_order: " in announced.stdout
    assert [path.name for path in (repository / "dist").glob("*.whl")] == [
        "jackfield_family_shop-0.2.0-py3-none-any.whl"
    ]


def test_the_workflow_runs_the_script_with_the_tags_of_earlier_releases(repository: Path) -> None:
    workflow = yaml.safe_load((repository / ".github" / "workflows" / "check.yml").read_text("utf-8"))
    source, *_ = steps = workflow["jobs"]["check"]["steps"]
    assert source["with"]["fetch-depth"] == 0
    (script,) = [step["run"] for step in steps if "run" in step]
    assert script == "bash check.sh"
    assert (repository / "check.sh").is_file()
