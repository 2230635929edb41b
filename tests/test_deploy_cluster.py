"""The files in deploy/compose and deploy/kubernetes name what exists, and fit each other and the host."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from jackfield.settings import KEYS
from jackfield_cli import main
from jackfield_host.endpoints.docs import ENDPOINTS
from jackfield_host.settings import HostSettings
from jackfield_host.uvicorn_server import CLOSE_SECONDS, EXIT_SECONDS
from jackfield_observability.metrics import Metrics
from jackfield_store_postgres.settings import URL_VARIABLE, PostgresSettings

ROOT = Path(__file__).parents[1]
COMPOSE = ROOT / "deploy" / "compose"
KUBERNETES = ROOT / "deploy" / "kubernetes"

PATHS = {endpoint.path for endpoint in ENDPOINTS}
PROVIDER_KEYS = {"OPENAI_API_KEY", "GEMINI_API_KEY"}
OTHER_PROGRAMS = {"POSTGRES_PASSWORD", "POSTGRES_USER", "POSTGRES_DB"}


def is_known(variable: str) -> bool:
    """Return whether the host, PostgreSQL's image or a provider reads a variable."""
    if variable in {URL_VARIABLE, "JACKFIELD_CONFIG"} | PROVIDER_KEYS | OTHER_PROGRAMS:
        return True
    if variable.startswith("JACKFIELD_HOST_"):
        setting = variable.removeprefix("JACKFIELD_HOST_").partition("__")[0].lower()
        return setting in {each.name for each in fields(HostSettings)}
    return variable.removeprefix("JACKFIELD_").lower() in KEYS


def environment_file() -> dict[str, str]:
    lines = (COMPOSE / "environment.example").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def objects() -> dict[str, dict[str, Any]]:
    """Return the Kubernetes objects of `kubectl apply -k`, by kind."""
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text("utf-8"))
    found = [
        each
        for file in kustomization["resources"]
        for each in yaml.safe_load_all((KUBERNETES / file).read_text())
    ]
    assert len({each["kind"] for each in found}) == len(found)
    return {each["kind"]: each for each in found}


# Compose


def test_the_compose_file_runs_the_hosts_that_nginx_knows(compose: dict[str, Any]) -> None:
    hosts = {name for name in compose["services"] if name.startswith("host-")}
    site = (COMPOSE / "nginx.conf").read_text("utf-8")
    listed = re.findall(r"^ +server ([\w-]+):(\d+) ", site, re.MULTILINE)
    assert {name for name, _ in listed} == hosts
    assert {int(port) for _, port in listed} == {HostSettings().port}
    assert set(compose["services"]["nginx"]["depends_on"]) == hosts
    listening = re.findall(r"listen (\d+);", site)
    assert compose["services"]["nginx"]["ports"] == [f"127.0.0.1:{port}:{port}" for port in listening]
    names = {compose["services"][host]["environment"]["JACKFIELD_HOST_NAME"] for host in hosts}
    assert names == hosts


def test_every_variable_of_the_compose_file_exists(compose: dict[str, Any]) -> None:
    used = set(environment_file())
    for service in compose["services"].values():
        used |= set(service.get("environment", {}))
    assert [name for name in sorted(used) if not is_known(name)] == []
    assert environment_file()[URL_VARIABLE].startswith("postgresql://jackfield:")


def test_the_environment_of_the_compose_file_gives_valid_settings(compose: dict[str, Any]) -> None:
    given = {
        **environment_file(),
        **compose["services"]["host-1"]["environment"],
        "JACKFIELD_HOST_ADDRESS": "0.0.0.0",
    }
    options = HostSettings.load({}, given)
    assert options.keys["phone"].user == "ada"
    subnet = compose["networks"]["jackfield"]["ipam"]["config"][0]["subnet"]
    assert options.proxies == (subnet,)


def test_compose_gives_hosts_time_to_drain_and_creates_no_store_by_itself(compose: dict[str, Any]) -> None:
    needed = HostSettings().drain_seconds + CLOSE_SECONDS + EXIT_SECONDS
    for name, service in compose["services"].items():
        if name.startswith("host-"):
            assert float(service["stop_grace_period"].removesuffix("s")) > needed
            (path,) = re.findall(r"localhost:8765(/[\w/]+)", service["healthcheck"]["test"][-1])
            assert path in PATHS
    creation = compose["services"]["store-create"]
    assert creation["profiles"] == ["setup"]
    check_command(creation["command"])


def check_command(command: list[str]) -> None:
    """Check that a command of the container exists."""
    program, *words = command
    assert program == "jackfield"
    done = CliRunner().invoke(main, [*words, "--help"])
    assert done.exit_code == 0, done.output


# Kubernetes


def container(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    (found,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def test_the_probes_use_endpoints_that_exist(objects: dict[str, dict[str, Any]]) -> None:
    host = container(objects)
    probes = {name: host[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {each["path"] for each in probes.values()} <= PATHS
    # A host that cannot reach its store gets no clients, but is not restarted.
    assert probes["readinessProbe"]["path"] == "/health/ready"
    assert probes["livenessProbe"]["path"] == probes["startupProbe"]["path"] == "/health/live"
    (port,) = host["ports"]
    assert port["containerPort"] == HostSettings().port
    assert {each["port"] for each in probes.values()} == {port["name"]}
    (served,) = objects["Service"]["spec"]["ports"]
    assert served["targetPort"] == port["name"]
    annotations = objects["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(port["containerPort"])
    assert annotations["prometheus.io/path"] in PATHS


def test_a_pod_has_time_to_drain(objects: dict[str, dict[str, Any]]) -> None:
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    wait = int(container(objects)["lifecycle"]["preStop"]["exec"]["command"][1])
    settings = tomllib.loads(objects["ConfigMap"]["data"]["jackfield.toml"])["host"]
    needed = wait + settings["drain_seconds"] + CLOSE_SECONDS + EXIT_SECONDS
    assert pod["terminationGracePeriodSeconds"] > needed
    assert pod["enableServiceLinks"] is False


def test_selectors_and_references_fit(objects: dict[str, dict[str, Any]]) -> None:
    deployment = objects["Deployment"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert objects["Service"]["spec"]["selector"] == labels
    assert objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    scaled = objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (scaled["kind"], scaled["name"]) == ("Deployment", deployment["metadata"]["name"])
    host = container(objects)
    assert host["envFrom"][0]["secretRef"]["name"] == objects["Secret"]["metadata"]["name"]
    volumes = {each["name"]: each for each in deployment["spec"]["template"]["spec"]["volumes"]}
    assert {each["name"] for each in host["volumeMounts"]} == set(volumes)
    assert volumes["settings"]["configMap"]["name"] == objects["ConfigMap"]["metadata"]["name"]
    (job,) = yaml.safe_load_all((KUBERNETES / "store-create.yaml").read_text("utf-8"))
    (creation,) = job["spec"]["template"]["spec"]["containers"]
    check_command(creation["command"])
    assert creation["envFrom"] == host["envFrom"]
    # It must not be selected as a host.
    assert job["spec"]["template"]["metadata"]["labels"] != labels


def test_the_settings_and_variables_of_the_manifests_are_valid(objects: dict[str, dict[str, Any]]) -> None:
    document = tomllib.loads(objects["ConfigMap"]["data"]["jackfield.toml"])
    assert set(document) - {"host", "stores"} <= set(KEYS)
    assert set(document["stores"]["postgres"]) <= {each.name for each in fields(PostgresSettings)}
    secrets = objects["Secret"]["stringData"]
    names = [*secrets, *(each["name"] for each in container(objects)["env"])]
    assert [name for name in names if not is_known(name)] == []
    options = HostSettings.load(document["host"], {**secrets, "JACKFIELD_HOST_ADDRESS": "0.0.0.0"})
    autoscaler = objects["HorizontalPodAutoscaler"]["spec"]
    (scaling,) = autoscaler["metrics"]
    assert int(scaling["pods"]["target"]["averageValue"]) < options.max_sessions
    assert scaling["pods"]["metric"]["name"] in Metrics().snapshot()["metrics"]


@pytest.mark.parametrize(
    "file",
    [
        each.relative_to(ROOT).as_posix()
        for each in sorted([*COMPOSE.iterdir(), *KUBERNETES.iterdir()])
        if each.name != "environment"
    ],
)
def test_every_file_is_documented(file: str) -> None:
    page = (ROOT / "docs" / "deployment.md").read_text("utf-8")
    assert f"[`{file}`](../{file})" in page
