"""Conversations: find, continue, rename, export and delete them; trace, copy and edit their messages."""

from __future__ import annotations

import asyncio

from jackfield_scripted import ScriptedCall, ScriptedModel
from playwright.async_api import expect

from browser.harness import Deployment, open_console, run_with_chromium


async def answers(model: ScriptedModel) -> None:
    while True:
        heard = (await model.hears()).text
        await model.says(f"About {heard.split()[-1]}")


async def books(model: ScriptedModel) -> None:
    await model.hears()
    await model.calls(ScriptedCall("book_room", {"room": "Photo room", "day": "2026-11-20"}))
    await model.says("Please confirm.")
    await model.hears()
    await model.says("It is booked.")


def test_conversations_are_found_continued_renamed_and_deleted(deployment: Deployment) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(300),
            open_console(
                deployment, books, answers, answers, permissions=["clipboard-read", "clipboard-write"]
            ) as console,
        ):
            page = console.page
            await console.open()
            titles = page.get_by_role("navigation", name="Conversations").locator(".title")
            await expect(page.get_by_text("Your conversations will appear here.")).to_be_visible()
            await console.send("Book the photo room")
            await expect(titles).to_have_text(["Book the photo room"])

            new = page.get_by_role("button", name="New conversation")
            for _ in range(2):
                await new.click()
                await expect(page.get_by_role("heading", name="What can I do for you?")).to_be_visible()
            await console.send("Tell me about lamps")
            await expect(page.get_by_text("About lamps", exact=True)).to_be_visible()
            # Conversations in which nothing was said are not listed.
            await expect(titles).to_have_text(["Tell me about lamps", "Book the photo room"])
            await expect(page.locator("[aria-current=true]")).to_contain_text("Tell me about lamps")

            await page.get_by_role("searchbox", name="Search conversations").fill("please confirm")
            await expect(titles).to_have_text(["Book the photo room"])
            await console.check_accessibility()
            # The first conversation continues, although this page has no token for it any more.
            await titles.click()
            await page.get_by_role("searchbox", name="Search conversations").fill("")
            await expect(page.locator(".message.user .message-text")).to_have_text(["Book the photo room"])
            await page.get_by_role("button", name="Approve").click()
            await expect(page.get_by_text("It is booked.")).to_be_visible()

            # After a reload, the trace is complete as well: the policies are in the audit log.
            for _ in range(2):
                await page.get_by_role("button", name="Trace").last.click()
                trace = page.get_by_role("region", name="Trace")
                await expect(trace.locator("[data-kind=tool] code")).to_have_text(["book_room", "book_room"])
                await expect(trace).to_contain_text("book_room: waiting for your decision")
                await expect(trace).to_contain_text("confirmation: pending")
                await expect(trace).to_contain_text("Model thinking")
                await console.check_accessibility()
                await page.reload()

            user = page.locator(".message.user")
            await user.hover()
            await user.get_by_role("button", name="Copy").click()
            assert await page.evaluate("navigator.clipboard.readText()") == "Book the photo room"
            await user.get_by_role("button", name="Edit").click()
            await expect(page.get_by_label("Message", exact=True)).to_have_value("Book the photo room")
            await page.get_by_label("Message", exact=True).fill("")

            await titles.get_by_text("Book the photo room").hover()
            await page.get_by_role("button", name="Rename “Book the photo room”").click()
            await page.get_by_role("textbox", name="Title").fill("Photo room")
            await page.keyboard.press("Enter")
            await page.reload()
            await expect(titles).to_have_text(["Photo room", "Tell me about lamps"])
            await expect(page.get_by_text("It is booked.")).to_be_visible()

            await page.get_by_role("button", name="Export").click()
            dialog = page.get_by_role("dialog", name="Photo room")
            await expect(dialog).to_contain_text("Book the photo room")
            async with page.expect_download() as saved:
                await dialog.get_by_role("button", name="Save as Markdown").click()
            assert "> It is booked." in (await (await saved.value).path()).read_text()
            await dialog.get_by_role("button", name="Close").click()

            await page.get_by_role("button", name="Delete “Photo room”").click()
            await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            await expect(page.get_by_role("heading", name="What can I do for you?")).to_be_visible()
            await expect(titles).to_have_text(["Tell me about lamps"])

    run_with_chromium(run())


def test_a_conversation_uses_and_keeps_the_model_that_the_user_chooses(deployment: Deployment) -> None:
    models = '[models.quick]\ntransport = "openai"\nsettings = { text_model = "quick-1" }\n'

    async def run() -> None:
        async with asyncio.timeout(300), open_console(deployment, answers, answers, more=models) as console:
            page = console.page
            await console.open()
            choice = page.get_by_role("combobox", name="Model")
            await expect(choice.locator("option")).to_have_text(["openai", "quick (openai)"])
            await choice.select_option("quick")
            await console.send("Tell me about lamps")
            await expect(page.get_by_text("About lamps", exact=True)).to_be_visible()
            assert console.server.requests[-1]["model"] == "quick-1"
            await console.check_accessibility()
            # It continues with that model on a host that was restarted.
            await deployment.stop()
            await deployment.start()
            await console.send("And about chairs")
            await expect(page.get_by_text("About chairs", exact=True)).to_be_visible()
            assert console.server.requests[-1]["model"] == "quick-1"
            await expect(choice).to_have_value("quick")

    run_with_chromium(run())
