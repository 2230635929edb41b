"""MCP clients in the console: the card of a call that one of them made, and the list of clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jackfield_host.security.api_keys import new_key
from jackfield_scripted import ScriptedModel
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation, TextContent
from playwright.async_api import expect

from browser.harness import Deployment, open_console, run_with_chromium

ROOM = {"room": "the red room", "day": "2026-03-01"}


async def silent(model: ScriptedModel) -> None:
    await model.hears()


def test_a_user_approves_the_call_of_an_mcp_client_on_its_card(
    deployment: Deployment, tmp_path: Path
) -> None:
    import httpx2

    async def main() -> None:
        made = new_key("ada", "ada", ["operator"])
        async with open_console(deployment, silent, more=made.lines) as console:
            page = console.page
            headers = {"Authorization": f"Bearer {made.key}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(
                    streamable_http_client(f"{deployment.address}/mcp", http_client=http),
                    mode="legacy",
                    client_info=Implementation(name="desk editor", version="3"),
                ) as client,
            ):
                meta: Any = {"jackfield/idempotencyKey": "red-room"}
                waiting = await client.call_tool("book_room", ROOM, meta=meta)
                asked = waiting.content[1]
                assert isinstance(asked, TextContent)
                link = asked.text.split()[-1]
                await page.goto(link)
                dialog = page.get_by_role("dialog")
                await dialog.get_by_label("Token").fill(made.key)
                await dialog.get_by_role("button", name="Sign in").click()
                card = page.get_by_role("group", name="Confirmation")
                await expect(card).to_contain_text("Book the the red room on 2026-03-01?")
                await console.check_accessibility()
                await card.get_by_role("button", name="Approve").click()
                await expect(card).to_contain_text(
                    "You approved this call. The approval applies to this call"
                )
                done = await client.call_tool("book_room", ROOM, meta=meta)
                assert done.structured_content == {"room": "the red room", "reference": "R-17"}
                await page.reload()
                await expect(card).to_contain_text("The call was approved.")

                await console.open("operations")
                clients = page.get_by_role("region", name="MCP clients")
                await expect(clients).to_contain_text("1 client")
                await expect(clients.get_by_role("row").nth(1)).to_contain_text("desk editor 3")
                await console.check_accessibility()
            assert (tmp_path / "booked.txt").read_text() == "the red room\n"

    run_with_chromium(main())
