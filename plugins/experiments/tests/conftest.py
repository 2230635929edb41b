"""Fixtures for the tests of experiments; experiment_hosts.py has the deployment."""

from __future__ import annotations

import sys
from pathlib import Path

# Test modules are imported by path here. The hosts are those of the host's tests.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "host" / "tests"))

import pytest
from experiment_hosts import ExperimentFolder, make_site
from jackfield.experiments import experiments
from jackfield_experiments import monitor


@pytest.fixture(scope="session")
def experiment_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install a tool with several variants, and freeze them."""
    return make_site(tmp_path_factory.mktemp("experiments"))


@pytest.fixture
def folder(experiment_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExperimentFolder:
    """Return a working folder for the hosts of one test, which look around often."""
    monkeypatch.syspath_prepend(str(experiment_site))
    monkeypatch.setenv("HST_KEY", "k")
    monkeypatch.setenv("HST_FOLDER", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiments, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(monitor, "ROUND_SECONDS", 0.05)
    made = ExperimentFolder(tmp_path, experiment_site / "tool_registry.json", experiment_site)
    made.write()
    return made
