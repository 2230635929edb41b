"""The host serves the files in results, and shows operators the state of the servers."""

from __future__ import annotations

from pathlib import Path

from jackfield_mcp_tools.endpoints import file_routes, server_routes
from jackfield_mcp_tools.foreign_servers import ForeignServers
from shop_deployment import Shop
from starlette.applications import Starlette
from starlette.testclient import TestClient


def client(servers: ForeignServers) -> TestClient:
    return TestClient(Starlette(routes=[*file_routes(servers), *server_routes(servers)]))


async def test_files_are_shown_only_if_they_are_images_and_servers_with_what_changed(tmp_path: Path) -> None:
    shop = Shop(tmp_path, allow=["get_price", "picture", "change"])
    shop.freeze()
    shop.redefine(get_price={"description": "Now\u200b different."})
    async with shop.host() as host:
        image, blob = (await host.call("picture")).data["attachments"]
        site = client(host.servers)
        shown, saved = site.get(image["url"]), site.get(blob["url"])
        assert (shown.headers["content-type"], shown.headers["content-disposition"]) == (
            "image/png",
            "inline",
        )
        assert saved.headers["content-type"] == "application/octet-stream"
        assert saved.headers["content-disposition"] == "attachment"
        assert "sandbox" in saved.headers["content-security-policy"]
        assert site.get("/mcp-files/" + "0" * 32).status_code == 404

        server = site.get("/mcp-servers").json()["servers"]["shop"]
        tools = {tool["toolId"]: tool for tool in server["tools"]}
        assert server["state"] == "connected"
        assert "hang" in server["unfrozen"]
        assert tools["shop__picture"]["withheld"] is None
        assert tools["shop__get_price"]["changes"] == [
            'description altered: "Returns the price of an item." -> "Now\\u200b different."'
        ]
