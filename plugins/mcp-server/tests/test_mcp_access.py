"""Access to the MCP server: tokens, users, bans, and the metadata for clients that look for an issuer."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from jackfield_host.security.api_keys import digest, new_key
from jackfield_mcp_server.tool_calls import TURN
from joserfc import jwt
from joserfc.jwk import ECKey
from mcp.shared.exceptions import MCPError
from mcp_harness import ACCEPT, ERAS, INITIALIZE, McpFolder, running_host, text_of
from mcp_types import Implementation

each_era = pytest.mark.parametrize("era", ERAS)

ISSUER = "https://id.example"

METADATA = "/.well-known/oauth-protected-resource/mcp"


def keys(*names: str, roles: tuple[str, ...] = ()) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the API keys of some users, and the settings that accept them."""
    made = {name: new_key(name, name).key for name in names}
    tables = {name: {"digest": digest(key), "user": name, "roles": list(roles)} for name, key in made.items()}
    return made, tables


class Issuer:
    """An issuer of tokens."""

    def __init__(self, folder: Path) -> None:
        self._key = ECKey.generate_key("P-256")
        self._file = folder / "key.pem"
        self._file.write_bytes(self._key.as_pem(private=False))

    @property
    def table(self) -> dict[str, Any]:
        """The settings of a host that accepts its tokens."""
        return {
            "algorithms": ["ES256"], "key_file": str(self._file), "audience": "jackfield", "issuer": ISSUER,
        }  # fmt: skip

    def token(self, user: str, **claims: Any) -> str:
        """Return a token for a user."""
        said = {"sub": user, "aud": "jackfield", "iss": ISSUER, "exp": int(time.time()) + 60, **claims}
        return jwt.encode({"alg": "ES256"}, said, self._key)


@each_era
def test_a_call_is_made_for_the_user_of_the_token(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        made, tables = keys("ada", "bob")
        async with running_host(folder, keys=tables) as host:
            found = {}
            for user, key in made.items():
                async with host.client(era, token=key) as client:
                    result = await client.call_tool("mct_facts", {"text": "x"})
                    assert result.structured_content is not None
                    assert result.structured_content["user"] == user
                    found[user] = result.structured_content["session"]
            assert found["ada"] != found["bob"]

    asyncio.run(run())


def test_a_refused_token_names_the_metadata_which_names_the_issuer(folder: McpFolder) -> None:
    async def run() -> None:
        issuer = Issuer(folder.path)
        async with running_host(folder, jwt=issuer.table) as host:
            expired = issuer.token("ada", exp=int(time.time()) - 600)
            foreign = issuer.token("ada", aud="another")
            for token in (None, "nonsense", expired, foreign):
                async with host.http(token) as http:
                    refused = await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)
                    assert refused.status_code == 401
                    challenge = refused.headers["www-authenticate"]
                    assert challenge.startswith("Bearer ")
                    assert f'resource_metadata="{host.url}{METADATA}"' in challenge
            async with host.http() as http:
                document = (await http.get(METADATA)).json()
                assert document["resource"] == f"{host.url}/mcp"
                assert document["authorization_servers"] == [ISSUER]
            async with host.client(ERAS[1], token=issuer.token("ada")) as client:
                result = await client.call_tool("mct_facts", {"text": "x"})
                assert result.structured_content is not None
                assert result.structured_content["user"] == "ada"

    asyncio.run(run())


def test_a_host_without_an_issuer_has_no_metadata(folder: McpFolder) -> None:
    async def run() -> None:
        _, tables = keys("ada")
        async with running_host(folder, keys=tables) as host, host.http() as http:
            assert (await http.get(METADATA)).status_code == 404
            refused = await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)
            assert refused.status_code == 401
            assert "resource_metadata" not in refused.headers["www-authenticate"]

    asyncio.run(run())


def test_a_token_for_one_session_cannot_be_used(folder: McpFolder) -> None:
    async def run() -> None:
        issuer = Issuer(folder.path)
        token = issuer.token("ada", session="0" * 32)
        async with (
            running_host(folder, jwt=issuer.table) as host,
            host.client("legacy", token=token) as client,
        ):
            with pytest.raises(MCPError, match="valid for one session only"):
                await client.call_tool("mct_look", {"text": "x"})
            assert folder.effects("begun x") == 0

    asyncio.run(run())


def test_a_token_for_voice_gets_the_tools_for_voice(folder: McpFolder) -> None:
    async def run() -> None:
        issuer = Issuer(folder.path)
        token = issuer.token("ada", mode="voice")
        async with (
            running_host(folder, jwt=issuer.table) as host,
            host.client("legacy", token=token) as client,
        ):
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert "mct_spoken" in names
            assert not (await client.call_tool("mct_spoken", {"text": "x"})).is_error

    asyncio.run(run())


def test_a_user_who_loses_a_role_loses_it_at_once(folder: McpFolder) -> None:
    async def run() -> None:
        issuer = Issuer(folder.path)
        async with running_host(folder, jwt=issuer.table) as host:
            found = []
            for roles in (["staff"], []):
                async with host.client(ERAS[1], token=issuer.token("ada", roles=roles)) as client:
                    result = await client.call_tool("mct_facts", {"text": "x"})
                    assert result.structured_content is not None
                    found.append(result.structured_content["session"])
            # A session keeps the roles that it was opened with.
            assert found[0] != found[1]

    asyncio.run(run())


def test_a_user_cannot_use_the_connection_or_the_card_of_another(folder: McpFolder) -> None:
    async def run() -> None:
        made, tables = keys("ada", "eve")
        async with (
            running_host(folder, keys=tables) as host,
            host.http(made["ada"]) as ada,
            host.http(made["eve"]) as eve,
        ):
            started = await ada.post("/mcp", json=INITIALIZE, headers=ACCEPT)
            headers = {**ACCEPT, "Mcp-Session-Id": started.headers["mcp-session-id"]}
            call = {"name": "mct_book", "arguments": {"text": "a table"}}
            request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            assert (await eve.post("/mcp", json=request, headers=headers)).status_code == 404
            assert (await eve.delete("/mcp", headers=headers)).status_code == 404
            waiting = (await ada.post("/mcp", json=request, headers=headers)).json()
            card = waiting["result"]["content"][1]["text"].split()[-1].partition("/#/confirmation/")[2]
            for response in (
                await eve.get(f"/mcp/confirmations/{card}"),
                await eve.post(f"/mcp/confirmations/{card}", json={"approve": True}),
            ):
                assert response.status_code == 404
            assert folder.effects("begun a table") == 0

    asyncio.run(run())


def test_a_sealed_question_belongs_to_its_user(folder: McpFolder) -> None:
    era = ERAS[1]

    async def run() -> None:
        made, tables = keys("ada", "eve")
        settings = {"trust_clients": True, "console": False}
        async with running_host(folder, settings, keys=tables) as host:

            async def answer(context: Any, params: Any) -> Any:
                raise AssertionError

            options: dict[str, Any] = {"elicitation_callback": answer}
            async with (
                host.client(era, token=made["ada"], **options) as ada,
                host.client(era, token=made["eve"], **options) as eve,
            ):
                arguments = {"text": "a table"}
                asked = await ada.session.call_tool("mct_book", arguments, allow_input_required=True)
                with pytest.raises(MCPError, match="requestState"):
                    await eve.session.call_tool(
                        "mct_book",
                        arguments,
                        input_responses={"confirm": {"action": "accept", "content": {"approve": True}}},  # type: ignore[dict-item]
                        request_state=asked.request_state,  # type: ignore[union-attr]
                    )
            assert folder.effects("begun a table") == 0

    asyncio.run(run())


def test_a_user_has_a_limited_number_of_connections(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder, {"connections_per_user": 2}) as host, host.http() as http:
            for _ in range(2):
                started = await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)
                assert "result" in started.json()
            refused = await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)
            assert "too many connected" in refused.json()["error"]["message"]
            headers = {"Mcp-Session-Id": started.headers["mcp-session-id"]}
            assert (await http.delete("/mcp", headers=headers)).status_code == 200
            assert "result" in (await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)).json()

    asyncio.run(run())


def test_operators_see_the_connected_clients(folder: McpFolder) -> None:
    async def run() -> None:
        made, tables = keys("ada")
        operators, more = keys("op", roles=("operator",))
        async with running_host(folder, keys={**tables, **more}) as host:
            async with AsyncExitStack() as stack:
                for era, name in zip(ERAS, ("old editor", "new editor"), strict=True):
                    connecting = host.client(
                        era, token=made["ada"], client_info=Implementation(name=name, version="1.2")
                    )
                    client = await stack.enter_async_context(connecting)
                    await client.call_tool("mct_look", {"text": "x"})
                http = await stack.enter_async_context(host.http(operators["op"]))
                clients = (await http.get("/mcp/clients")).json()["clients"]
            found = {each["name"]: each for each in clients}
            assert found["old editor"]["protocol"] == "2025-11-25"
            assert found["new editor"]["protocol"] == "2026-07-28"
            assert {each["user"] for each in clients} == {"ada"}
            assert host.host is not None
            assert {each["host"] for each in clients} == {host.host.sessions.runtime.hosts.name}
            async with host.http(made["ada"]) as http:
                assert (await http.get("/mcp/clients")).status_code == 403

    asyncio.run(run())


def test_a_page_of_an_allowed_origin_can_be_a_client(folder: McpFolder) -> None:
    async def run() -> None:
        origin = "https://app.example"
        async with running_host(folder, origins=[origin]) as host, host.http() as http:
            asked = {
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type, mcp-protocol-version, mcp-session-id",
            }
            allowed = await http.options("/mcp", headers=asked)
            assert allowed.status_code == 200
            assert allowed.headers["access-control-allow-origin"] == origin
            started = await http.post("/mcp", json=INITIALIZE, headers={**ACCEPT, "Origin": origin})
            assert "mcp-session-id" in started.headers["access-control-expose-headers"].lower()

    asyncio.run(run())


@each_era
def test_a_banned_user_is_refused(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            assert not (await client.call_tool("mct_look", {"text": "before"})).is_error
            assert host.host is not None
            await host.host.sessions.runtime.capabilities["bans"].add("local", 60)
            with pytest.raises(MCPError):
                await client.call_tool("mct_look", {"text": "after"})
            async with host.http() as http:
                refused = await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)
                assert refused.status_code == 403
                assert refused.json()["error"]["code"] == "banned"
            assert folder.effects("begun after") == 0

    asyncio.run(run())


@each_era
def test_the_budget_of_a_turn_applies_to_the_calls_that_a_client_groups(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            grouped: Any = {TURN: "turn-1"}
            kinds = []
            for number in range(6):
                result = await client.call_tool("mct_finds", {"text": str(number)}, meta=grouped)
                kinds.append(json.loads(text_of(result, 0))["error"]["type"] if result.is_error else "")
            assert kinds == ["", "", "", "", "", "BUDGET_EXCEEDED"]
            assert not (await client.call_tool("mct_finds", {"text": "alone"})).is_error

    asyncio.run(run())
