"""MCP servers that this project did not write, behind a host: frozen, governed and bounded."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from faults.client import SESSION
from faults.deployment import Host
from jackfield.contract.snapshot import Snapshot
from jackfield_testkit import WebSite
from mcp_interop.deployment import BuiltDeployment, serving
from mcp_interop.node_packages import environment, is_installed, node, script
from PIL import Image

pytestmark = pytest.mark.skipif(not is_installed(), reason="the packages from npm are not installed")

MAX_RESULT = 2000
READS = {"category": "retrieval"}


def npm(name: str, *arguments: str) -> list[str]:
    """Return the command of a server from npm."""
    return [node(), str(script(f"@modelcontextprotocol/server-{name}", "dist/index.js")), *arguments]


class ForeignDeployment(BuiltDeployment):
    """A host with six servers: three from PyPI, three from npm. One is reached over HTTP."""

    allow = (
        "jackfield-mcp-server",
        "jackfield-mcp-tools",
        "jackfield-observability",
        "jackfield-policies",
        "jackfield-store-sqlite",
        "jackfield-transport-local",
    )

    def __init__(self, folder: Path, everything: int) -> None:
        """`everything` is the port of the server of that name."""
        self.documents = folder / "documents"
        self.documents.mkdir()
        self.repository = folder / "repository"
        subprocess.run(["git", "init", "-q", str(self.repository)], check=True)
        bin_folder = Path(sys.executable).parent
        commands: dict[str, list[str]] = {
            "time": [str(bin_folder / "mcp-server-time")],
            # It refuses addresses on this machine otherwise.
            # With Node.js on its path, it would first install a package from npm. It does not need that.
            "web": ["/usr/bin/env", "PATH=", str(bin_folder / "mcp-server-fetch"), "--allow-private-ips"],
            "git": [str(bin_folder / "mcp-server-git"), "--repository", str(self.repository)],
            "files": npm("filesystem", str(self.documents)),
            "memory": npm("memory"),
        }
        servers = "capabilities.mcp.servers"
        self.tables = {
            "endpoints.mcp": {"trust_clients": True},
            "capabilities.mcp": {"folder": str(folder / "attachments")},
            **{
                f"{servers}.{name}": {"command": command, "max_result": MAX_RESULT}
                for name, command in commands.items()
            },
            f"{servers}.everything": {"url": f"http://127.0.0.1:{everything}/mcp"},
            f"{servers}.memory.environment": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
            # The operator decides what only reads; everything else writes, and asks.
            f"{servers}.time.defaults": READS,
            f"{servers}.web.defaults": READS,
            f"{servers}.everything.defaults": READS,
            f"{servers}.git.tools.git_log": READS,
            f"{servers}.files.tools.read_text_file": READS,
            f"{servers}.files.tools.read_media_file": READS,
            f"{servers}.memory.tools.read_graph": READS,
        }
        super().__init__(folder, expiry=600)


@pytest.fixture(scope="module")
def everything() -> Iterator[int]:
    """Start the server over HTTP and return its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    with subprocess.Popen(
        npm("everything", "streamableHttp"),
        env=environment(PORT=str(port)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stderr
        # It says so once it accepts connections; the pipe holds the little that it says later.
        line = next(line for line in process.stderr if b"listening" in line)
        assert str(port).encode() in line
        yield port
        # `node` may be a script that starts Node.js as another process.
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory, everything: int) -> ForeignDeployment:
    return ForeignDeployment(tmp_path_factory.mktemp("foreign"), everything)


@pytest.fixture(scope="module")
def host(deployment: ForeignDeployment) -> Iterator[Host]:
    with serving(deployment) as running:
        yield running


class Caller:
    """A client of the host's HTTP interface."""

    def __init__(self, host: Host) -> None:
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{host.port}", timeout=60, trust_env=False)

    def execute(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self.http.post(f"/execute/{tool}", json={"arguments": arguments}).json()
        return answer

    def data(self, tool: str, **arguments: Any) -> Any:
        """Return the data of a call that has to succeed."""
        answer = self.execute(tool, **arguments)
        assert answer["success"], answer
        return answer["envelope"]["data"]

    def decide(self, answer: Mapping[str, Any], *, approve: bool) -> Mapping[str, Any]:
        token = answer["confirmation"]["token"]
        decided = self.http.post(
            f"/confirmations/{token}", headers={SESSION: answer["token"]}, json={"approve": approve}
        )
        outcome: Mapping[str, Any] = decided.json()
        return outcome


@pytest.fixture
def caller(host: Host) -> Iterator[Caller]:
    made = Caller(host)
    with made.http:
        yield made


def test_the_tools_are_frozen_with_cautious_defaults(deployment: ForeignDeployment) -> None:
    tools = Snapshot.from_wire(json.loads(deployment.registry.read_text("utf-8"))).tools
    servers = {tool.partition("__")[0] for tool in tools}
    assert servers == {"time", "git", "files", "memory", "everything", "web"}
    # The server says that this one only reads; the operator has not said so.
    unsaid = tools["files__list_directory"].manifest
    assert (unsaid.side_effects, unsaid.requires_confirmation) == ("writes", True)
    said = tools["files__read_text_file"].manifest
    assert (said.side_effects, said.requires_confirmation) == ("read_only", False)


def test_a_person_is_shown_suspicious_texts_and_not_the_dialect_of_a_schema(
    deployment: ForeignDeployment,
) -> None:
    assert "Do not pass anything to this param" in deployment.warnings
    assert "$schema" not in deployment.warnings


def test_reads_reach_every_server(caller: Caller, deployment: ForeignDeployment) -> None:
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    commit = ["commit", "-q", "--allow-empty", "-m", "Begin the ledger"]
    subprocess.run(["git", "-C", str(deployment.repository), *author, *commit], check=True)
    (deployment.documents / "note.txt").write_text("bring the ladder")

    there = caller.data(
        "time__convert_time", source_timezone="Europe/Berlin", time="12:00", target_timezone="Asia/Tokyo"
    )
    assert "Asia/Tokyo" in json.dumps(there)
    assert "Begin the ledger" in json.dumps(caller.data("git__git_log", repo_path=str(deployment.repository)))
    note = caller.data("files__read_text_file", path=str(deployment.documents / "note.txt"))
    assert "bring the ladder" in json.dumps(note)
    assert caller.data("memory__read_graph")["entities"] == []
    assert "42" in json.dumps(caller.data("everything__get_sum", a=40, b=2))


def test_a_server_fetches_a_page_that_the_site_allows(caller: Caller) -> None:
    with WebSite() as site:
        site.page("/robots.txt", b"User-agent: *\nDisallow: /private", content_type="text/plain")
        site.page("/", b"<html><body><h1>Tides</h1><p>High water at noon.</p></body></html>")
        site.page("/private", b"<p>The safe is open.</p>")
        assert "High water at noon." in json.dumps(caller.data("web__fetch", url=site.url()))
        refused = caller.execute("web__fetch", url=site.url("/private"))
        assert "The safe is open." not in json.dumps(refused)
        assert not refused["success"]


def test_a_write_runs_only_once_a_person_approves(caller: Caller, deployment: ForeignDeployment) -> None:
    path = deployment.documents / "written.txt"
    declined = caller.execute("files__write_file", path=str(path), content="no")
    assert declined["error"]["code"] == "confirmation_required"
    caller.decide(declined, approve=False)
    assert not path.exists()
    asked = caller.execute("files__write_file", path=str(path), content="yes")
    assert not path.exists()
    assert caller.decide(asked, approve=True)["state"] == "done"
    assert path.read_text() == "yes"


def test_what_a_server_refuses_is_a_failure(caller: Caller, deployment: ForeignDeployment) -> None:
    outside = caller.execute("files__read_text_file", path=str(deployment.folder / "build.toml"))
    assert not outside["success"]
    assert "outside allowed directories" in outside["envelope"]["error"]["message"]


def test_results_are_bounded_and_images_are_stored(caller: Caller, deployment: ForeignDeployment) -> None:
    (deployment.documents / "long.txt").write_text("word " * 20_000)
    long = caller.execute("files__read_text_file", path=str(deployment.documents / "long.txt"))["envelope"]
    assert len(json.dumps(long["data"])) < MAX_RESULT + 100
    assert "of 100" in long["data"]["truncated"]
    # What is left still has the shape that the server declares, so typed clients accept it.
    assert long["data"]["content"].startswith("word word")
    assert "returnsViolations" not in long["meta"]
    picture = deployment.documents / "picture.png"
    Image.new("RGB", (4, 4), "red").save(picture)
    (image,) = caller.data("files__read_media_file", path=str(picture))["attachments"]
    assert image["mediaType"] == "image/png"
    assert caller.http.get(image["url"]).content == picture.read_bytes()


def test_a_client_from_elsewhere_uses_a_server_from_elsewhere_under_the_policies(
    host: Host, deployment: ForeignDeployment
) -> None:
    path = deployment.documents / "through.txt"
    asked: list[str] = []

    async def write(*, approve: bool) -> Any:
        from fastmcp import Client
        from fastmcp.client.elicitation import ElicitResult

        async def answer(message: str, *_: object) -> ElicitResult[dict[str, bool]]:
            asked.append(message)
            assert not path.exists()
            return ElicitResult(action="accept", content={"approve": approve})

        async with Client(f"http://127.0.0.1:{host.port}/mcp", elicitation_handler=answer) as client:
            arguments = {"path": str(path), "content": "through two protocols"}
            return await client.call_tool("files__write_file", arguments, raise_on_error=False)

    assert asyncio.run(write(approve=False)).is_error
    assert not asyncio.run(write(approve=True)).is_error
    assert path.read_text() == "through two protocols"
    assert len(asked) == 2
    assert all(str(path) in message for message in asked)
