"""The operations view: live metrics, calls in doubt, transcripts and the audit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jackfield.store import Store
from jackfield_host.security.api_keys import new_key
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_store_sqlite.store import SqliteStore
from playwright.async_api import Locator, expect

from browser.harness import Console, Deployment, open_console, run_with_chromium


async def conversation(model: ScriptedModel) -> None:
    await model.hears()
    await model.calls(ScriptedCall("format_datetime", {"datetime": "2026-03-01T10:00:00Z"}))
    await model.says("It is **ten o'clock**.")


async def talk(console: Console) -> None:
    """Hold a conversation with one tool call."""
    await console.open("chat")
    await console.send("What time is it?")
    await expect(console.page.get_by_text("ten o'clock").first).to_be_visible()


async def execute(console: Console, tool: str, **arguments: object) -> None:
    """Run a call as a page of the host would."""
    await console.page.request.post(
        f"{console.deployment.address}/execute/{tool}", data={"arguments": arguments}
    )


def figure(console: Console, name: str) -> Locator:
    return console.page.locator(f'[data-figure="{name}"] .figure-number')


def section(console: Console, name: str) -> Locator:
    return console.page.get_by_role("region", name=name)


def test_metrics_are_updated_live(deployment: Deployment) -> None:
    async def main() -> None:
        async with open_console(deployment, conversation) as console:
            page = console.page
            await console.open("operations")
            await expect(figure(console, "Calls")).to_have_text("0")
            await expect(section(console, "Tools")).to_contain_text("No tool has been called yet")
            hosts = section(console, "Hosts")
            await expect(hosts).to_contain_text("1 host,")
            await expect(hosts.get_by_role("row").nth(1)).to_contain_text("serving")

            await execute(console, "format_datetime", nonsense=1)
            await expect(page.get_by_text(re.compile("1 session and 1 turn since"))).to_be_visible()
            await execute(console, "end_voice_session")
            await execute(console, "book_room", room="Photo room", day="2026-11-20")
            await expect(figure(console, "Calls")).to_have_text("3")
            await expect(figure(console, "Errors")).to_have_text("2")
            await expect(figure(console, "Rejections")).to_have_text("1")
            row = section(console, "Tools").get_by_role("row").filter(has_text="format_datetime")
            await expect(row).to_contain_text("VALIDATION 1")
            await expect(row.locator("svg.percentiles")).to_be_visible()
            # A call that waits for confirmation is not a failure.
            asked = section(console, "Tools").get_by_role("row").filter(has_text="book_room")
            await expect(asked.get_by_role("cell").nth(2)).to_have_text("none")
            decided = page.get_by_role("region", name="Policy interventions").get_by_role("row")
            await expect(decided.filter(has_text="modes")).to_contain_text("refused")

            # A chart has a line once there are two samples.
            trend = page.locator('[data-figure="Calls"] svg')
            await expect(trend.locator(".line")).to_have_attribute("d", re.compile("^M.*L"))
            await expect(trend).to_have_attribute(
                "aria-label", re.compile(r"^Calls: [\d.]+ per minute, peak [\d.]+,")
            )
            await console.check_accessibility()

    run_with_chromium(main())


def test_a_conversation_is_listed_read_and_downloaded(deployment: Deployment, tmp_path: Path) -> None:
    async def main() -> None:
        async with open_console(deployment, conversation, accept_downloads=True) as console:
            page = console.page
            await talk(console)
            await console.open("operations")
            row = section(console, "Conversations").get_by_role("row").nth(1)
            await expect(row).to_contain_text("local")
            await expect(row).to_contain_text("text")
            await row.get_by_role("button", name="Transcript").click()
            dialog = page.get_by_role("dialog")
            lines = dialog.locator(".lines > li")
            await expect(lines.first).to_contain_text("What time is it?")
            await expect(lines.filter(has_text="format_datetime was called")).to_have_count(1)
            await expect(lines.last).to_contain_text("It is **ten o'clock**.")
            await console.check_accessibility()

            async with page.expect_download() as saving:
                await dialog.get_by_role("button", name="Save as Markdown").click()
            saved = await saving.value
            assert saved.suggested_filename.endswith(".md")
            await saved.save_as(tmp_path / "saved.md")
            text = (tmp_path / "saved.md").read_text()
            assert "> What time is it?" in text
            assert "> It is **ten o'clock**." in text

            async with page.expect_download() as saving:
                await dialog.get_by_role("button", name="Save as JSON lines").click()
            await (await saving.value).save_as(tmp_path / "saved.jsonl")
            kinds = [json.loads(line)["type"] for line in (tmp_path / "saved.jsonl").read_text().splitlines()]
            assert kinds[0] == "session"
            assert kinds.count("message") == 2
            assert "tool_complete" in kinds
            await page.keyboard.press("Escape")
            await expect(dialog).to_be_hidden()

    run_with_chromium(main())


async def booking(model: ScriptedModel) -> None:
    await model.hears()
    await model.calls(ScriptedCall("book_room", {"room": "Photo room", "day": "2026-11-20"}))
    await model.says("It is up to you.")


def test_a_call_that_waits_is_not_shown_as_failed_in_a_transcript(deployment: Deployment) -> None:
    async def main() -> None:
        async with open_console(deployment, booking) as console:
            await console.open("chat")
            await console.send("Book the photo room.")
            await expect(console.page.get_by_text("It is up to you.").first).to_be_visible()
            await console.open("operations")
            row = section(console, "Conversations").get_by_role("row").nth(1)
            await row.get_by_role("button", name="Transcript").click()
            lines = console.page.get_by_role("dialog").locator(".lines > li")
            await expect(lines.filter(has_text="book_room is waiting for approval")).to_have_count(1)
            await expect(lines.filter(has_text="failed")).to_have_count(0)

    run_with_chromium(main())


def test_a_tool_card_shows_the_policy_decisions(deployment: Deployment) -> None:
    async def main() -> None:
        async with open_console(deployment, conversation) as console:
            await talk(console)
            card = console.page.locator('[data-tool="format_datetime"]').first
            await card.locator("summary").click()
            decided = card.locator(".decisions li")
            await expect(decided.filter(has_text="loops")).to_have_text("loopspass")
            await expect(decided.filter(has_text="validation")).to_contain_text("defaults filled in")
            await console.check_accessibility()

    run_with_chromium(main())


def test_the_audit_can_be_filtered(deployment: Deployment) -> None:
    async def main() -> None:
        async with open_console(deployment, conversation) as console:
            await talk(console)
            await execute(console, "format_datetime", nonsense=1)
            await execute(console, "end_voice_session")
            await console.open("operations")
            audit = section(console, "Audit")
            rows = audit.locator("tbody tr")
            await expect(rows).to_have_count(3)

            await audit.get_by_label("Outcome").select_option("failed")
            await expect(rows).to_have_count(2)
            await audit.get_by_label("Tool").fill("format_datetime")
            await audit.get_by_label("Tool").press("Enter")
            await expect(rows).to_have_count(1)
            await expect(rows).to_contain_text("VALIDATION")
            await rows.locator("summary").click()
            await expect(rows.locator(".decisions li.bad")).to_contain_text("validation")
            await console.check_accessibility()

            await audit.get_by_label("Tool").fill("")
            await audit.get_by_label("Outcome").select_option("succeeded")
            await expect(rows).to_have_count(1)
            await rows.get_by_role("button", name="Only session").click()
            assert len(await audit.get_by_role("textbox", name="Session").input_value()) == 32
            await audit.get_by_label("Outcome").select_option("failed")
            await expect(audit).to_contain_text("No matching entries.")

    run_with_chromium(main())


async def leave_in_doubt(store: Store, call_id: str, arguments: str) -> str:
    """Leave a call in doubt, like a host that is killed during the call; return its key."""
    key = f"call/{'5e' * 16}/{call_id}"
    meta = {"toolId": "book_room", "toolVersion": "1.0.0", "registryVersion": "1", "duration": 0.0}
    note = {"callId": call_id, "session": "5e" * 16, "user": "ada", "arguments": arguments, "meta": meta}
    await store.claim(key, b"arguments", ttl=3600, note=json.dumps({**note, "at": store.now()}).encode())
    await store.abandon(key)
    return key


def test_calls_in_doubt_are_settled_after_a_confirmation(deployment: Deployment) -> None:
    harmful = json.dumps({"room": "<img src=x onerror=alert(1)>"})

    async def main() -> None:
        async with open_console(deployment) as console:
            page, address = console.page, console.deployment.address
            await console.open("operations")
            await expect(section(console, "Audit")).to_contain_text("No matching entries.")
            doubts = section(console, "Calls in doubt")
            await expect(doubts).to_have_count(0)

            store = await SqliteStore.open(deployment.folder / "jackfield.db")
            first = await leave_in_doubt(store, "first-call-1", harmful)
            await leave_in_doubt(store, "second-call-2", "x" * 4000)
            await store.close()
            items = doubts.get_by_role("listitem")
            await expect(items).to_have_count(2)
            await expect(doubts).to_contain_text("may or may not have taken effect")
            await expect(items.first).to_contain_text("ada, started")
            await expect(items.first.get_by_label("Arguments of book_room")).to_contain_text("<img src=x")
            await console.check_accessibility()

            # One click records nothing.
            await items.nth(1).get_by_role("button", name="Record as not run").click()
            dialog = page.get_by_role("dialog")
            await expect(dialog).to_contain_text("Record the call to book_room as not run?")
            await expect(dialog.get_by_label("Arguments of book_room")).to_contain_text("xxx")
            await console.check_accessibility()
            await dialog.get_by_role("button", name="Cancel").click()
            await expect(dialog).to_be_hidden()
            assert len((await (await page.request.get(f"{address}/calls")).json())["calls"]) == 2
            await items.nth(1).get_by_role("button", name="Record as not run").click()
            await dialog.get_by_role("button", name="Record as not run").click()
            await expect(page.get_by_text("The call to book_room was recorded as not run.")).to_be_visible()
            await expect(items).to_have_count(1)

            # Another operator was faster.
            await items.first.get_by_role("button", name="Record as run").click()
            await page.request.post(f"{address}/calls/settle", data={"key": first, "ran": False})
            await dialog.get_by_role("button", name="Record as run").click()
            await expect(page.get_by_text("Another operator may have settled it.")).to_be_visible()
            await expect(doubts).to_have_count(0)
            assert "404" in console.problems.pop(), "the browser notes that the call is not in doubt any more"

    run_with_chromium(main())


def test_users_who_are_not_operators_see_only_their_own_data(deployment: Deployment) -> None:
    key, lines = new_key("page", "ada")

    async def main() -> None:
        async with open_console(deployment, conversation, more=lines) as console:
            page = console.page
            await page.add_init_script(f"sessionStorage.setItem('jackfield.token', '{key}')")
            await talk(console)
            await console.open("operations")
            await expect(page.get_by_text("This endpoint requires the `operator` role.")).to_be_visible()
            await expect(section(console, "Conversations")).to_contain_text("Your conversations")
            await expect(section(console, "Conversations").get_by_role("row")).to_have_count(2)
            await expect(section(console, "Audit")).to_be_hidden()
            await expect(figure(console, "Calls")).to_be_hidden()

    run_with_chromium(main())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_operations_view_fits_a_phone(deployment: Deployment, scheme: str) -> None:
    async def main() -> None:
        size = {"width": 390, "height": 844}
        async with open_console(deployment, conversation, viewport=size, color_scheme=scheme) as console:
            await talk(console)
            await console.open("operations")
            await expect(section(console, "Audit").locator("tbody tr")).to_have_count(1)
            wide = await console.page.evaluate("document.querySelector('main').scrollWidth")
            assert wide <= size["width"]
            await console.check_accessibility()

    run_with_chromium(main())
