"""Every view of the console, on a light desktop and a dark phone, checked with axe."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from browser.harness import Console, Deployment, open_console, run_with_chromium

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


async def check_start_page(console: Console) -> None:
    await console.open()
    await expect(console.page.get_by_role("heading", name="What can I do for you?")).to_be_visible()
    await console.check_accessibility()


async def check_conversation_list(console: Console) -> None:
    """On a phone, the list covers the chat, and Escape closes it."""
    button = console.page.get_by_role("button", name="Conversations")
    conversations = console.page.get_by_role("navigation", name="Conversations")
    await button.click()
    await expect(conversations).to_be_visible()
    await console.check_accessibility()
    await console.page.keyboard.press("Escape")
    await expect(conversations).to_be_hidden()
    await expect(button).to_be_focused()


async def check_registry(console: Console) -> None:
    await console.open("registry")
    await expect(console.page.get_by_role("heading", name="Policies")).to_be_visible()
    await console.check_accessibility()
    await console.page.get_by_role("navigation", name="Tools").get_by_role("link").nth(1).click()
    await expect(console.page.get_by_role("heading", name="Guide")).to_be_visible()
    await console.check_accessibility()


async def check_unknown_tool(console: Console) -> None:
    await console.open("registry/no_such_tool")
    await expect(console.page.locator("main").get_by_role("alert")).to_contain_text("no_such_tool")
    await console.check_accessibility()


async def check_operations(console: Console) -> None:
    await console.open("operations")
    await expect(console.page.get_by_role("heading", name="Audit")).to_be_visible()
    await console.check_accessibility()


@pytest.mark.parametrize(("scheme", "size"), [("light", DESKTOP), ("dark", PHONE)], ids=["light", "dark"])
def test_every_view_is_accessible(deployment: Deployment, scheme: str, size: dict[str, int]) -> None:
    async def main() -> None:
        async with open_console(
            deployment, viewport=size, color_scheme=scheme, reduced_motion="reduce"
        ) as console:
            await check_start_page(console)
            if size == PHONE:
                await check_conversation_list(console)
            await check_registry(console)
            await check_operations(console)

    run_with_chromium(main())


def test_addresses_that_name_nothing_are_accessible(deployment: Deployment) -> None:
    async def main() -> None:
        async with open_console(deployment) as console:
            await check_unknown_tool(console)
            await console.page.goto(f"{deployment.address}/no/such/page")
            await expect(console.page.get_by_role("heading")).to_have_text("There is no page at this address")
            await console.check_accessibility()
            console.problems.clear()  # the browser reports both 404s

    run_with_chromium(main())
