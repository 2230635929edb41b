"""A family of sixteen tools over one capability: small to write, and exactly once while hosts are killed."""

from __future__ import annotations

import asyncio
import importlib
import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import httpx
import pytest
from faults.client import KEY, SESSION
from faults.deployment import Deployment, Host
from jackfield.contract.snapshot import Snapshot
from jackfield.contract.tool import ToolError

FAMILY = Path(__file__).parent / "shop_family"
MAX_LINES, MAX_FILES = 450, 24
TASKS, KILLS = 40, 5
ADDRESSES = ("Mill Lane 4, 10115 Berlin", "Quay 12, 20457 Hamburg", "Old Market 1, 50667 Cologne")
Call = tuple[str, dict[str, Any]]


class ShopDeployment(Deployment):
    """Hosts with the shop's family, installed from its folder, and the shop's database."""

    allow = (
        "acme-shop",
        "jackfield-policies",
        "jackfield-observability",
        "jackfield-store-sqlite",
        "jackfield-transport-local",
    )

    def __init__(self, folder: Path) -> None:
        self.database = folder / "shop.db"
        self.tables = {"capabilities.shop": {"database": str(self.database)}}
        super().__init__(folder, expiry=600)

    def freeze(self) -> Path:
        registry, config = self.folder / "tool_registry.json", self.folder / "build.toml"
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--target", str(self.folder / "site"), str(FAMILY)], check=True)
        config.write_text(
            f"registry = {json.dumps(str(registry))}\nallow = {json.dumps(self.allow)}\n", "utf-8"
        )
        build = [sys.executable, "-m", "jackfield_cli", "build", "--config", str(config)]
        subprocess.run(build, cwd=self.folder, env=self.environment, check=True)
        return registry


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> ShopDeployment:
    return ShopDeployment(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def shop(deployment: ShopDeployment, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The family's package, imported from where it is installed."""
    monkeypatch.syspath_prepend(str(deployment.folder / "site"))
    for module in ("handler", "shop"):
        importlib.import_module(f"acme_shop.{module}")
    yield sys.modules["acme_shop"]
    for name in [name for name in sys.modules if name.startswith("acme_shop")]:
        del sys.modules[name]


def test_sixteen_tools_take_at_most_450_lines_in_24_files() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=FAMILY, check=True, capture_output=True, text=True,
    )  # fmt: skip
    files = [FAMILY / name for name in listed.stdout.splitlines()]

    assert len(files) <= MAX_FILES
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) <= MAX_LINES


def test_every_tool_of_the_family_is_frozen_in_full(deployment: ShopDeployment) -> None:
    tools = Snapshot.load(deployment.registry).tools

    assert len(tools) == 16
    assert {tool.content_hash for tool in tools.values()} == {tools["get_order"].content_hash}
    for tool in tools.values():
        assert tool.manifest.description == tool.summary
        assert tool.manifest.parameters["additionalProperties"] is False
        assert tool.manifest.returns is not None
        assert tool.manifest.requires == ("shop",)
    assert tools["add_item"].manifest.parameters["properties"]["quantity"]["maximum"] == 20
    assert tools["get_order"].manifest.side_effects == "read_only"
    assert tools["place_order"].manifest.requires_confirmation is True


def test_recorded_tasks_reach_the_right_database_while_hosts_are_killed(
    deployment: ShopDeployment, shop: Any, tmp_path: Path
) -> None:
    calls = [call for task in recorded_tasks(seed=19) for call in task]
    expected = tmp_path / "expected.db"
    stock(shop, expected)
    stock(shop, deployment.database)
    refused = sum(not run_directly(shop, expected, call) for call in calls)

    replay = Replay(deployment, seed=19)
    asyncio.run(replay.run(calls))

    assert replay.kills == KILLS
    assert contents(deployment.database) == contents(expected)
    # Some of the tasks ask for what the shop cannot do; those are answered, too.
    assert 0 < refused < len(calls) / 2
    assert replay.refused == refused


def recorded_tasks(seed: int) -> Iterator[list[Call]]:
    """Yield what customers ask for: each task concerns one customer and one order."""
    chosen = random.Random(seed)
    for number in range(TASKS):
        customer, order = f"C-{chosen.randrange(1, 6)}", f"A-{1001 + number}"
        product, quantity = f"P-{chosen.randrange(1, 9)}", chosen.randrange(1, 4)
        further: list[Call] = [
            ("add_item", {"order": order, "product": product, "quantity": quantity}),
            ("remove_item", {"order": order, "product": product, "quantity": quantity}),
            ("apply_voucher", {"order": order, "code": chosen.choice(["SPRING10", "EXPIRED"])}),
            ("change_order_address", {"order": order, "address": chosen.choice(ADDRESSES)}),
            ("change_customer_address", {"customer": customer, "address": chosen.choice(ADDRESSES)}),
            ("refund_order", {"order": order, "cents": chosen.randrange(1, 9000)}),
            ("cancel_order", {"order": order}),
            ("return_order", {"order": order}),
            ("list_orders", {"customer": customer, "status": "open"}),
            ("get_order", {"order": order}),
        ]
        yield [
            ("find_customer", {"email": f"{customer}@example.org"}),
            # An order of one piece cannot fail, so the numbers of the orders are known.
            ("place_order", {"customer": customer, "product": product}),
            *chosen.sample(further, 3),
        ]


def stock(shop: Any, database: Path) -> None:
    with shop.shop.Shop(str(database)).change() as data:
        for number in range(1, 6):
            key = f"C-{number}"
            data.put(
                "customer", {"id": key, "name": key, "email": f"{key}@example.org", "address": ADDRESSES[0]}
            )
        for number in range(1, 9):
            data.put("product", {"id": f"P-{number}", "name": f"Bell {number}", "price": 1990, "stock": 500})


def run_directly(shop: Any, database: Path, call: Call) -> bool:
    """Run a call without a host; return whether it succeeded."""
    tool, arguments = call
    function = getattr(shop.handler, tool)
    context = type("Context", (), {"shop": shop.shop.Shop(str(database))})
    try:
        function(get_type_hints(function)["args"](**arguments), context)
    except ToolError:
        return False
    return True


def contents(database: Path) -> list[Any]:
    connection = sqlite3.connect(database, timeout=30)
    try:
        return connection.execute("select * from documents order by kind, id").fetchall()
    finally:
        connection.close()


class Replay:
    """Two hosts that take turns being killed, and a client that delivers every call to both."""

    def __init__(self, deployment: ShopDeployment, seed: int) -> None:
        self.kills = 0
        self.refused = 0
        self._deployment = deployment
        self._chosen = random.Random(seed)
        self._hosts: list[Host] = []

    async def run(self, calls: list[Call]) -> None:
        self._hosts = [Host(self._deployment, number) for number in range(2)]
        for host in self._hosts:
            host.lease = 1.0
            await host.start()
        deadly = set(self._chosen.sample(range(len(calls)), KILLS))
        try:
            for number, call in enumerate(calls):
                victim = self._chosen.choice(self._hosts) if number in deadly else None
                await self._perform(call, f"call-{number}", victim)
        finally:
            for host in self._hosts:
                await host.close()

    async def _perform(self, call: Call, key: str, victim: Host | None) -> None:
        """Deliver a call until its outcome is final; kill a host meanwhile, and start it again."""
        before = contents(self._deployment.database)
        killed = asyncio.create_task(self._kill(victim)) if victim else None
        outcomes = await asyncio.gather(*(self._deliver(call, key, host) for host in self._hosts))
        if killed:
            await killed
        if None in outcomes or any(state == "in_doubt" for state, _ in filter(None, outcomes)):
            outcomes = [await self._outcome(call, key, host, before) for host in self._hosts]
        (state, envelope), again = outcomes[0] or ("", None), outcomes[1]
        assert again == (state, envelope), "both hosts answer with the same bytes"
        if state == "never_run":
            # An operator saw in the database that it did not run.
            await self._perform(call, f"{key}-again", None)
            return
        assert state in ("done", "failed"), (state, envelope)
        self.refused += state == "failed"

    async def _kill(self, victim: Host) -> None:
        await asyncio.sleep(self._chosen.uniform(0, 0.03))
        await victim.kill()
        self.kills += 1
        await victim.start()

    async def _outcome(self, call: Call, key: str, host: Host, before: list[Any]) -> tuple[str, Any] | None:
        """Deliver a call again, and settle it from the database if its host died while it ran."""
        while True:
            outcome = await self._deliver(call, key, host)
            if outcome and outcome[0] == "in_doubt":
                ran = contents(self._deployment.database) != before
                how = ("--ran", "--data", "{}") if ran else ("--not-run",)
                # None is listed if the process turned out to be alive and has recorded the result meanwhile.
                for listed in await self._deployment.command("calls", "list", "--in-doubt"):
                    await self._deployment.command("calls", "settle", listed["key"], *how)
            elif outcome:
                return outcome

    async def _deliver(self, call: Call, key: str, host: Host) -> tuple[str, Any] | None:
        """Make a call and approve it; return its state and envelope, or None if the host died."""
        tool, arguments = call
        try:
            answer = await host.http.post(
                f"/execute/{tool}", json={"arguments": arguments}, headers={KEY: key}
            )
            content = answer.json()
            if card := content.get("confirmation"):
                headers, path = {SESSION: content["token"]}, f"/confirmations/{card['token']}"
                approved = await host.http.post(path, json={"approve": True}, headers=headers)
                content = approved.json()
        except (httpx.HTTPError, ValueError):
            return None
        envelope = content.get("envelope")
        if envelope is None or (not envelope["ok"] and envelope["error"]["retryable"]):
            await asyncio.sleep(0.1)
            return None
        return envelope["meta"].get("state") or ("done" if envelope["ok"] else "failed"), envelope
