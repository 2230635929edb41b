"""The environment variables of programs that tests start."""

from __future__ import annotations

import os


def clean_environ() -> dict[str, str]:
    """Return the environment without variables that refer to the surrounding one."""
    hidden = {
        "VIRTUAL_ENV",
        # nox sets these, and uv would install into the environment of the tests.
        "UV_PYTHON",
        "UV_PROJECT_ENVIRONMENT",
        "PYTHONPATH",
        "PYTEST_ADDOPTS",
        "JACKFIELD_ALLOW",
        "JACKFIELD_DENY",
        "JACKFIELD_REGISTRY",
    }
    return {name: value for name, value in os.environ.items() if name not in hidden}
