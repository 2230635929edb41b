"""The console's button that downloads the local model: progress, failure, and a conversation that uses it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from jackfield_host.security.api_keys import new_key
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit.site_packages import SitePackages
from model_index import MODEL, PARTS, ModelIndex, model_index
from playwright.async_api import expect

from browser.harness import Console, Deployment, free_port, open_console, run_with_chromium

pytest.importorskip("xllamacpp", reason="the download is offered only where llama.cpp is installed")

ALLOW = (
    "jackfield-console",
    "jackfield-policies",
    "jackfield-transport-local",
    "jackfield-tool-format-datetime",
)
BUTTON = "Download the local language model (3.4 MB)"


class LocalDeployment(Deployment):
    """A host with an automatic provider: no key, no server, and a model that can be downloaded."""

    index: ModelIndex

    @property
    def environ(self) -> dict[str, str]:
        return self.index.environ

    def configure(self, server: OpenAIServer, host: str = "", provider: str = "", more: str = "") -> None:
        self.port = self.port or free_port()
        (self.folder / "console.toml").write_text(
            f'store = "memory"\nallow = {json.dumps(ALLOW)}\n'
            f'registry = "{self.site / "tool_registry.json"}"\n'
            f"[host]\nport = {self.port}\n{host}\n{more}\n"
        )


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[LocalDeployment]:
    site = SitePackages(tmp_path / "site")
    site.frozen(*ALLOW)
    with model_index(tmp_path / "index") as index:
        made = LocalDeployment(tmp_path, site.folder, launcher=index.launcher)
        made.index = index
        yield made


def browse(deployment: Deployment, steps: Callable[[Console], Awaitable[None]], more: str = "") -> None:
    async def run() -> None:
        async with asyncio.timeout(300), open_console(deployment, more=more) as console:
            await console.open()
            await steps(console)

    run_with_chromium(run())


def test_one_button_downloads_the_local_model_and_new_conversations_use_it(
    deployment: LocalDeployment,
) -> None:
    index = deployment.index
    index.held[2] = threading.Event()

    async def steps(console: Console) -> None:
        page = console.page
        provider = page.get_by_test_id("provider")
        await expect(provider).to_contain_text("it uses no language model")
        await expect(provider.get_by_text("jackfield model get")).to_be_hidden()  # The button replaces it.
        await expect(provider.get_by_text("set OPENAI_API_KEY")).to_have_count(0)
        await console.check_accessibility()
        await page.get_by_role("button", name=BUTTON).click()
        bar = page.get_by_role("progressbar", name="Downloading the local language model")
        percent = 100 * len(PARTS[0]) // len(MODEL)
        await expect(provider).to_contain_text(f"{percent} % · 2.0 of 3.4 MB")
        assert await bar.get_attribute("value") == str(len(PARTS[0]))
        await console.check_accessibility()
        await page.reload()
        await expect(provider).to_contain_text(f"{percent} % · 2.0 of 3.4 MB")
        # It stays visible during a conversation.
        await console.send("Hello")
        await expect(page.locator(".message.assistant")).to_have_count(1)
        await expect(bar).to_be_visible()
        index.held[2].set()
        await expect(
            page.get_by_text("Download complete. New conversations use the local language model.")
        ).to_be_visible()
        await console.check_accessibility()
        await page.reload()
        await page.get_by_role("button", name="Start a new conversation").click()
        await expect(provider).to_contain_text("it uses the local language model")
        await expect(page.get_by_test_id("download")).to_have_count(0)

    browse(deployment, steps)
    assert index.target.read_bytes() == MODEL


def test_a_failed_download_says_why_and_can_be_retried(deployment: LocalDeployment) -> None:
    index = deployment.index
    index.lost.add(2)

    async def steps(console: Console) -> None:
        page = console.page
        await page.get_by_role("button", name=BUTTON).click()
        failed = page.get_by_test_id("download").get_by_role("alert")
        await expect(failed).to_contain_text(
            "The download of the local language model failed: small-model-part2"
        )
        await console.check_accessibility()
        index.lost.clear()
        await page.get_by_role("button", name="Try again").click()
        await expect(
            page.get_by_text("Download complete. New conversations use the local language model.")
        ).to_be_visible()
        await expect(failed).to_have_count(0)

    browse(deployment, steps)
    assert index.target.read_bytes() == MODEL


def test_only_operators_see_the_download_button(deployment: LocalDeployment) -> None:
    key = new_key("desk", "ada")

    async def steps(console: Console) -> None:
        page = console.page
        dialog = page.get_by_role("dialog", name="Token")
        await dialog.get_by_label("Token").fill(key.key)
        await dialog.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_test_id("state")).to_have_text("ready")
        await expect(page.get_by_text("tool available")).to_be_visible()
        await expect(page.get_by_test_id("provider")).to_have_count(0)
        await expect(page.get_by_test_id("download")).to_have_count(0)

    browse(deployment, steps, key.lines)
