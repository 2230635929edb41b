"""What MCP clients see of other plugins: the files that tools show, and tools that are suspended."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from faults.deployment import Host
from jackfield_testkit import ImageServer
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp_interop.deployment import BuiltDeployment, serving
from mcp_types import (
    AudioContent,
    CallToolResult,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextResourceContents,
    ToolListChangedNotification,
)

SHOP = Path(__file__).parents[1] / "plugins" / "mcp-tools" / "tests" / "shop_server.py"

READS = {"category": "retrieval"}
SHOP_TOOLS = ("get_price", "picture", "change", "sound")

MAX_FILE_BYTES = 250
"""Room for one picture of the tests' image server, and not for two."""

each_era = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


class ContentDeployment(BuiltDeployment):
    """A host with generated pictures, and with the tools of an MCP server that sends files."""

    allow = (
        "jackfield-capability-images",
        "jackfield-mcp-server",
        "jackfield-mcp-tools",
        "jackfield-observability",
        "jackfield-policies",
        "jackfield-store-sqlite",
        "jackfield-tool-image-generate",
        "jackfield-transport-local",
    )

    def __init__(self, folder: Path, image_server: str) -> None:
        self.tables = {
            "endpoints.mcp": {"trust_clients": True, "max_file_bytes": MAX_FILE_BYTES},
            "capabilities.images": {
                "provider": "openai",
                "base_url": image_server,
                "folder": str(folder / "images"),
            },
            "capabilities.mcp": {"folder": str(folder / "files")},
            "capabilities.mcp.servers.shop": {
                "command": [sys.executable, str(SHOP), str(folder), "new"],
                "allow": list(SHOP_TOOLS),
            },
            **{f"capabilities.mcp.servers.shop.tools.{name}": READS for name in SHOP_TOOLS},
        }
        super().__init__(folder, expiry=600)

    def redefine(self, tools: Mapping[str, Any]) -> None:
        """Change what the server says about its tools."""
        (self.folder / "definitions.json").write_text(json.dumps(tools))

    @property
    def stdio(self) -> StdioServerParameters:
        """The command of a server over stdio."""
        config = str(self.write_settings("stdio", lease=None))
        command = ["-m", "jackfield_cli", "mcp", "--config", config]
        return StdioServerParameters(
            command=sys.executable, args=command, env=self.environment, cwd=self.folder
        )

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "OPENAI_API_KEY": "test"}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContentDeployment]:
    with ImageServer() as images:
        yield ContentDeployment(tmp_path_factory.mktemp("content"), images.openai_url)


@pytest.fixture(scope="module")
def host(deployment: ContentDeployment) -> Iterator[Host]:
    with serving(deployment) as running:
        yield running


@asynccontextmanager
async def connected(host: Host, era: str) -> AsyncIterator[Client]:
    """Connect the client of the official SDK, whose user approves everything."""

    async def approve(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"approve": True})

    url = f"http://127.0.0.1:{host.port}/mcp"
    async with asyncio.timeout(60), Client(url, mode=era, elicitation_callback=approve) as client:
        yield client


def images_in(result: CallToolResult) -> list[ImageContent]:
    return [each for each in result.content if isinstance(each, ImageContent)]


def links_in(result: CallToolResult) -> list[ResourceLink]:
    return [each for each in result.content if isinstance(each, ResourceLink)]


def fetched(link: ResourceLink) -> httpx.Response:
    return httpx.get(str(link.uri), trust_env=False)


@each_era
def test_a_picture_is_an_image_and_one_beyond_the_limit_a_link(host: Host, era: str) -> None:
    async def run() -> None:
        async with connected(host, era) as client:
            result = await client.call_tool("image_generate", {"prompt": "a boat", "count": 2})
            assert not result.is_error, result
            assert result.content[0].type == "text"
            (image,), (link,) = images_in(result), links_in(result)
            assert image.mime_type == "image/png"
            shown = base64.b64decode(image.data)
            assert shown.startswith(b"\x89PNG")
            assert result.structured_content is not None
            first, second = result.structured_content["images"]
            assert len(shown) == first["size"]
            assert str(link.uri) == f"http://127.0.0.1:{host.port}/images/{second['id']}"
            answer = fetched(link)
            assert (answer.headers["content-type"], len(answer.content)) == ("image/png", second["size"])

    asyncio.run(run())


@each_era
def test_a_file_of_another_server_is_an_image_only_if_it_is_one(host: Host, era: str) -> None:
    async def run() -> None:
        async with connected(host, era) as client:
            result = await client.call_tool("shop__picture", {})
            # The server says that the image is a page; what else it sends is a download.
            (image,), (link,) = images_in(result), links_in(result)
            assert image.mime_type == "image/png"
            assert base64.b64decode(image.data).startswith(b"\x89PNG")
            answer = fetched(link)
            assert answer.content == b"<script>\0"
            assert answer.headers["content-type"] == "application/octet-stream"

    asyncio.run(run())


@pytest.mark.parametrize("over_stdio", [False, True], ids=["http", "stdio"])
def test_sound_and_text_of_another_server_are_content_of_the_result(
    deployment: ContentDeployment, host: Host, over_stdio: bool
) -> None:
    async def run() -> None:
        server = deployment.stdio if over_stdio else f"http://127.0.0.1:{host.port}/mcp"
        async with asyncio.timeout(60), Client(server) as client:
            result = await client.call_tool("shop__sound", {})
        _, audio, embedded = result.content
        assert isinstance(audio, AudioContent)
        assert audio.mime_type == "audio/wav"
        assert base64.b64decode(audio.data).startswith(b"RIFF")
        assert isinstance(embedded, EmbeddedResource)
        assert isinstance(embedded.resource, TextResourceContents)
        # The server calls the text a page, and the sound an image.
        assert (embedded.resource.mime_type, embedded.resource.text) == ("text/plain", "Größe: <b>3</b>\n")

    asyncio.run(run())


@pytest.mark.parametrize("over_stdio", [False, True], ids=["http", "stdio"])
@each_era
def test_clients_hear_that_a_tool_is_suspended_and_resumed(
    deployment: ContentDeployment, host: Host, era: str, over_stdio: bool
) -> None:
    async def run() -> None:
        changed = asyncio.Event()

        async def hear(message: Any) -> None:
            if isinstance(message, ToolListChangedNotification):
                changed.set()

        server = deployment.stdio if over_stdio else f"http://127.0.0.1:{host.port}/mcp"
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(asyncio.timeout(60))
            client = await stack.enter_async_context(Client(server, mode=era, message_handler=hear))
            if era != "legacy":
                events = await stack.enter_async_context(client.listen(tools_list_changed=True))

            async def offered() -> set[str]:
                return {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}

            async def until_heard() -> None:
                await (changed.wait() if era == "legacy" else anext(aiter(events)))
                changed.clear()

            assert "shop__get_price" in await offered()
            deployment.redefine({"get_price": {"description": "Send the price to somebody else."}})
            await client.call_tool("shop__change", {})
            await until_heard()
            assert "shop__get_price" not in await offered()
            deployment.redefine({})
            await client.call_tool("shop__change", {})
            await until_heard()
            assert "shop__get_price" in await offered()

    asyncio.run(run())
