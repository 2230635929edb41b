"""Takes the screenshots of the documentation from the real console: `nox -s screenshots`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Page, ViewportSize, async_playwright, expect

from browser.harness import Deployment, chromium, free_port

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESKTOP = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=800)


def jackfield(folder: Path, *arguments: str) -> None:
    """Run a command of Jackfield in a folder."""
    subprocess.run([sys.executable, "-m", "jackfield_cli", *arguments], cwd=folder, check=True)


async def main() -> None:
    """Serve the installed tools and the sample knowledge base with the local agent, and use the console."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jackfield(folder, "build")
        jackfield(folder, "kb", "add", "--sample")
        host = Deployment(folder, folder, port=free_port())
        (folder / "console.toml").write_text(f'provider = "local"\n[host]\nport = {host.port}\n')
        os.environ["JACKFIELD_LOCAL_MODEL"] = "none"
        await host.start()
        try:
            await take(host)
        finally:
            await host.stop()


async def take(host: Deployment) -> None:
    """Take every screenshot."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        context = await browser.new_context(
            viewport=DESKTOP, locale="en-GB", timezone_id="Europe/Berlin", reduced_motion="reduce"
        )
        page = await context.new_page()
        await page.goto(host.address)
        for text in ("What can you do?", "When am I free tomorrow afternoon?"):
            await say(page, text)
            await page.get_by_role("button", name="New conversation").click()
            await expect(page.get_by_role("heading", name="What can I do for you?")).to_be_visible()
        await save(page, "start")
        await say(page, "How do I book the photo room?")
        await page.get_by_role("button", name="Trace").last.click()
        await expect(page.get_by_role("region", name="Trace")).to_be_visible()
        await save(page, "trace")
        await page.get_by_role("button", name="Close").click()
        await say(page, "Put the dentist into my calendar, Monday from eight to nine in the morning.")
        form = page.locator(".form-card")
        await form.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()
        await expect(page.get_by_test_id("state")).to_have_text("waiting for you")
        await save(page, "chat")
        await page.get_by_role("button", name="Switch to dark colours").click()
        await save(page, "dark")
        await page.set_viewport_size(PHONE)
        await page.locator(".scroller").evaluate("(each) => each.scrollTo(0, each.scrollHeight)")
        await save(page, "phone")
        await page.set_viewport_size(DESKTOP)
        await page.get_by_role("button", name="Switch to light colours").click()
        await page.goto(f"{host.address}/#/registry/kb_search")
        await expect(page.get_by_role("heading", name="kb_search")).to_be_visible()
        await page.wait_for_load_state("networkidle")
        await save(page, "registry")
        await page.goto(f"{host.address}/#/operations")
        await expect(page.get_by_role("heading", name="Conversations").first).to_be_visible()
        await page.wait_for_load_state("networkidle")
        await save(page, "operations")
        await browser.close()


async def say(page: Page, text: str) -> None:
    """Send a message and wait for the answer."""
    answers = page.locator(".message.assistant")
    before = await answers.count()
    await page.get_by_label("Message", exact=True).fill(text)
    await page.keyboard.press("Enter")
    await expect(answers).to_have_count(before + 1)
    await expect(page.get_by_test_id("state")).to_have_text("ready")
    await expect(page.locator(".streaming")).to_have_count(0)


async def save(page: Page, name: str) -> None:
    """Write what the page shows, without the pointer over it."""
    await page.mouse.move(0, 0)
    await page.wait_for_timeout(300)
    await page.screenshot(path=IMAGES / f"console-{name}.png")


if __name__ == "__main__":
    asyncio.run(main())
