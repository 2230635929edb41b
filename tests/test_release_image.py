"""`nox -s image` understands the Containerfile and says what it needs; the session itself takes minutes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from releases import image
from releases.containerfile import CONTAINERFILE, ContainerfileError, stages, stop_timeout
from releases.namespaces import PROGRAMS, Image


def test_the_containerfile_contains_only_what_the_session_supports() -> None:
    text = CONTAINERFILE.read_text("utf-8")
    build, last = stages(text)
    assert build.name == "build"
    assert last.command == ["jackfield", "serve"]
    assert last.health_check.command[0] == "python"
    # Three failed checks after the start period, as a container engine counts.
    assert (last.health_check.timeout, last.health_check.unhealthy_after) == (6.0, 50.0)
    assert stop_timeout(text) == 45.0


def test_an_instruction_that_the_session_does_not_support_is_named() -> None:
    with pytest.raises(ContainerfileError, match="ENTRYPOINT"):
        stages('FROM python:3.12-slim\nENTRYPOINT ["jackfield"]\n')


def test_a_variable_can_refer_to_an_earlier_one(tmp_path: Path) -> None:
    (stage,) = stages("FROM python:3.12-slim\nENV PATH=/opt/bin:$PATH \\\n    MODE='a b'\n")
    made = Image(tmp_path)
    before = made.variables["PATH"]
    assert dict(stage.instructions[0].variables(made.variables)) == {
        "PATH": f"/opt/bin:{before}", "MODE": "a b"
    }  # fmt: skip


def test_a_user_without_the_rights_is_told_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit, match="needs root"):
        image.main(tmp_path)


def test_the_packages_of_missing_programs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "debootstrap" else f"/usr/bin/{name}")
    with pytest.raises(SystemExit, match=f"apt-get install {PROGRAMS['debootstrap']}"):
        image.main(tmp_path)
