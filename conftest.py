"""For every test: nothing installed or set on the developer's machine affects hosts or nested runs."""

from __future__ import annotations

import gc
import os
import signal
import ssl
from collections.abc import Iterator
from typing import Any

import certifi
import pytest

# A host that is not told its provider must not find one.
os.environ["JACKFIELD_LOCAL_SERVERS"] = "none"
os.environ["JACKFIELD_LOCAL_MODEL"] = "none"
for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "JACKFIELD_PROVIDER"):
    os.environ.pop(variable, None)

# A shell starts background jobs with SIGINT ignored, and programs inherit that: Ctrl-C would not reach those
# that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Reject paths that do not exist; with xdist, pytest would only say that it ran no tests."""
    for argument in config.args:
        path = argument.partition("::")[0]
        if not (config.invocation_params.dir / path).exists():
            raise pytest.UsageError(f"{argument}: there is no such file or folder")


@pytest.fixture(scope="session", autouse=True)
def _nested_runs_without_plugins() -> None:
    """Let the pytest that a test starts load no plugins of dependencies: importing them takes seconds."""
    # In a fixture, so that the workers of xdist, which start earlier, still have their plugins.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"


@pytest.fixture(scope="session", autouse=True)
def _one_certificate_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let clients read one certificate of a public authority instead of all, which takes 20 ms a client."""
    # The servers of the tests have certificates of their own.
    end = "-----END CERTIFICATE-----\n"
    authority = tmp_path_factory.mktemp("authority") / "authority.pem"
    authority.write_text(certifi.contents().partition(end)[0] + end)
    default = ssl.get_default_verify_paths().openssl_cafile
    public = {certifi.where(), os.environ.get("SSL_CERT_FILE", default), default}
    load = ssl.SSLContext.load_verify_locations

    def load_one(context: ssl.SSLContext, cafile: Any = None, *more: Any, **options: Any) -> None:
        load(context, authority if cafile in public else cafile, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_verify_locations", load_one)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector from what every worker collects: thousands of tests, and all modules."""
    gc.disable()
    try:
        yield
    finally:
        # These objects live until the end of the run.
        gc.freeze()
        gc.enable()


LONG = (
    "tests/test_cluster.py",
    "tests/test_installation.py",
    "tests/test_site.py",
    "tests/test_fault_campaign.py",
    "tests/test_shop_family.py",
    "tests/test_tool_repository.py",
    "tests/test_tutorial.py",
)
"""Files with tests of ten seconds or more."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first, so that no worker is left with one of them at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
