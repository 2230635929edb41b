"""An OpenAPI document of a real API becomes tools that call it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from importer_commands import install, jackfield
from openapi_server import DocumentServer

TODOIST = Path(__file__).with_name("todoist.yaml")
EXAMPLE = re.compile(r"^# (\w+)$|^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def guide_examples(project: Path) -> list[tuple[str, str]]:
    """Return each example of the guide with the id of its tool."""
    guide = next((project / "src").glob("*/guide.md")).read_text("utf-8")
    tool, found = "", []
    for heading, example in EXAMPLE.findall(guide):
        if heading:
            tool = heading
        else:
            found.append((tool, example))
    return found


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated package, installed in a site and frozen into a registry."""
    folder = tmp_path_factory.mktemp("todoist")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = jackfield("import", "openapi", TODOIST, "--name", "todoist", "--out", "todoist")
        assert done.exit_code == 0, done.output
        # A card with raw arguments is all that the importer can offer for optional ones.
        assert set(re.findall(r"JF\d+", done.output)) <= {"JF406"}
        assert re.search(r"todoist: \d+ tools; \d+ write data and ask the user first\.", done.output)
        install(folder / "todoist", folder / "site")
        use_site(patch, folder)
        built = jackfield("build")
        assert built.exit_code == 0, built.output
    return folder / "todoist"


def use_site(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.chdir(folder)
    patch.syspath_prepend(str(folder / "site"))
    patch.setenv("JACKFIELD_ALLOW", "todoist-tools,jackfield-policies")


@pytest.fixture
def todoist(generated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_site(monkeypatch, generated.parent)
    return generated


def test_every_operation_of_a_real_api_is_imported_built_and_called(
    todoist: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = yaml.safe_load(TODOIST.read_text("utf-8"))
    operations = {
        operation["operationId"]
        for item in document["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    }
    assert len(operations) >= 30
    monkeypatch.setenv("TODOIST_TOKEN", "secret-token")
    examples = guide_examples(todoist)
    with DocumentServer(document, "secret-token").running() as server:
        monkeypatch.setenv("TODOIST_BASE_URL", server.url)
        for tool, arguments in examples:
            done = jackfield("call", tool, arguments, "--yes", "--json")
            assert done.exit_code == 0, (tool, arguments, done.output, server.refused)
            envelope = json.loads(done.stdout)
            assert "returnsViolations" not in json.dumps(envelope), tool
    assert server.refused == []
    assert set(server.served) == operations
    assert len(server.served) == len(examples) > len(operations)


def test_a_call_from_the_shell_reaches_the_api_with_the_credentials_of_the_operator(todoist: Path) -> None:
    document = yaml.safe_load(TODOIST.read_text("utf-8"))
    with DocumentServer(document, "from-the-operator").running() as server:

        def call(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
            path = str(todoist.parent / "site")
            return subprocess.run(
                [sys.executable, "-m", "jackfield_cli", "call", *arguments, "--json"],
                env={**os.environ, "PYTHONPATH": path, "TODOIST_BASE_URL": server.url, **environ},
                capture_output=True, text=True, check=False,
            )  # fmt: skip

        tasks = call("get_tasks", '{"ids": ["1", "2"]}', TODOIST_TOKEN="from-the-operator")
        assert tasks.returncode == 0, tasks.stderr
        assert "2995104339" in tasks.stdout
        missing = call("get_tasks", "{}")
        assert missing.returncode == 1
        assert '"AUTH"' in missing.stdout
        assert "TODOIST_TOKEN" in missing.stdout
        wrong = call("get_tasks", "{}", TODOIST_TOKEN="wrong-secret")
        assert wrong.returncode == 1
        assert "wrong-secret" not in wrong.stdout + wrong.stderr
    assert server.served == ["getTasks"]


def test_the_registry_states_the_guessed_effects_and_review_lists_them(todoist: Path) -> None:
    registry = json.loads((todoist.parent / "tool_registry.json").read_text("utf-8"))
    tools = {each["toolId"]: each for each in registry["tools"]}
    assert len(tools) == 33
    assert tools["get_tasks"]["sideEffects"] == "read_only"
    assert tools["create_task"]["sideEffects"] == "writes"
    assert tools["create_task"]["requiresConfirmation"] is True
    assert tools["create_task"]["idempotent"] is False
    assert tools["delete_task"]["idempotent"] is True
    review = (todoist / "REVIEW.md").read_text("utf-8")
    assert [each for each in tools if f"| [ ] | `{each}` |" not in review] == []
    assert "https://api.todoist.com/rest/v2" in review


def test_arguments_come_from_path_query_header_and_body(todoist: Path) -> None:
    schema = json.loads((todoist / "src" / "todoist_tools" / "schema.json").read_text("utf-8"))
    created = schema["tools"]["create_task"]["parameters"]
    assert {"X_Request_Id", "content", "labels", "project_id"} <= set(created["properties"])
    assert created["required"] == ["content"]
    updated = schema["tools"]["update_task"]["parameters"]
    assert updated["required"] == ["task_id"]
    assert "id" not in created["properties"]


def test_the_document_may_come_from_standard_input_and_only_some_operations_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = json.dumps(yaml.safe_load(TODOIST.read_text("utf-8"))).encode()
    arguments = ("--only", "GET /labels*", "--prefix", "td", "--base-url", "https://todo.example.com/api")
    done = jackfield("import", "openapi", "-", *arguments, stdin=data)
    assert done.exit_code == 0, done.output
    project = tmp_path / "todoist-rest-api-tools"
    schema = json.loads((project / "src" / "todoist_rest_api_tools" / "schema.json").read_text("utf-8"))
    assert set(schema["tools"]) == {"td_get_labels", "td_get_label", "td_get_shared_labels"}
    assert "'https://todo.example.com/api'" in (project / "src/todoist_rest_api_tools/api.py").read_text(
        "utf-8"
    )


def test_existing_files_are_replaced_only_with_force(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("import", "openapi", TODOIST, "--only", "get_label", "--out", out)
    assert jackfield(*arguments).exit_code == 0
    handler = out / "src" / "todoist_rest_api_tools" / "handler.py"
    handler.write_text("mine", "utf-8")
    refused = jackfield(*arguments)
    assert refused.exit_code == 1
    assert "would be overwritten; use --force" in refused.output
    assert handler.read_text("utf-8") == "mine"
    assert jackfield(*arguments, "--force").exit_code == 0
    assert handler.read_text("utf-8") != "mine"
