"""A command or a host that starts does not import what only later work needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from process_environment import clean_environ

LIBRARIES = {
    "PIL",
    "babel",
    "cryptography",
    "cyclonedx",
    "email_validator",
    "google.genai",
    "httpx",
    "jsonschema",
    "markdown_it",
    "numpy",
    "onnx",
    "onnxruntime",
    "openai",
    "phonenumbers",
    "prometheus_client",
    "pydantic",
    "rapidfuzz",
    "rich",
    "soxr",
    "tokenizers",
    "xllamacpp",
}
"""Libraries that take long to import; each is used by a part of this repository.

`extract_contacts` imports two of them with its own modules. The host imports those at startup, right after it
has compared them with the registry.
"""

HELP = """
import json, sys
from jackfield_cli import main
main(["--help"], standalone_mode=False)
print(json.dumps(sorted(sys.modules)))
"""

SERVE = """
import json, os, sys
from jackfield_cli import main
from jackfield_host.commands import serve

def report(host, port, deployment):
    print(json.dumps(sorted(sys.modules)), flush=True)
    os._exit(0)

serve.report_ready = report
main(["serve", "--port", "0", "--provider", "local"])
"""


def modules_of(program: str, folder: Path) -> set[str]:
    """Return the modules that a program has imported when it prints them on its last line."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=clean_environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the registry of all tools in this repository."""
    folder = tmp_path_factory.mktemp("deployment")
    done = subprocess.run(
        [sys.executable, "-m", "jackfield_cli", "build"],
        cwd=folder,
        env=clean_environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_help_imports_no_heavy_library(tmp_path: Path) -> None:
    imported = modules_of(HELP, tmp_path)
    assert "jackfield_host" in imported
    assert imported & (LIBRARIES | {"asyncio", "starlette", "uvicorn"}) == set()


def test_a_host_is_ready_before_it_imports_a_heavy_library(deployment: Path) -> None:
    imported = modules_of(SERVE, deployment)
    # Every tool's handler is imported and the knowledge base is open, but nobody has used them yet.
    assert {"jackfield_tool_extract_contacts.handler", "jackfield_kb.library"} <= imported
    assert imported & LIBRARIES == {"email_validator", "phonenumbers"}
    of_builds = {"jackfield_builder.snapshot_diff", "jackfield_schemas.parser"}
    assert imported & of_builds == set()
