"""Forms in the conversation: completing, correcting, dismissing and resuming them."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from jackfield_testkit.site_packages import SitePackages
from playwright.async_api import Locator, WebSocketRoute, expect

from browser.harness import Console, Deployment, create_site, open_console, run_with_chromium

Steps = Callable[[Console], Awaitable[None]]

ASK = 'form book_room {"room": "Photo room"}'


@pytest.fixture(scope="session")
def forms_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tools of these tests, with a transport that asks with forms."""
    folder = tmp_path_factory.mktemp("forms-site")
    SitePackages(folder).plugin("con-forms", "from jackfield_scripted.form_transport import *\n")
    return create_site(folder).folder


@pytest.fixture
def deployment(console_site: Path, forms_site: Path, tmp_path: Path) -> Deployment:
    """A separate folder for the host of each test."""
    shutil.copytree(console_site / "knowledge", tmp_path / "knowledge")
    return Deployment(tmp_path, forms_site, uses="forms")


def browse(deployment: Deployment, steps: Steps, **options: Any) -> None:
    """Run the steps in a new browser window."""

    async def run() -> None:
        async with asyncio.timeout(300), open_console(deployment, **options) as console:
            await console.open()
            await steps(console)

    run_with_chromium(run())


def booked(deployment: Deployment) -> list[str]:
    file = deployment.folder / "booked.txt"
    return file.read_text().splitlines() if file.exists() else []


def form(console: Console, tool: str = "book_room") -> Locator:
    return console.page.get_by_role("group", name=f"Form for {tool}")


def field(card: Locator, name: str) -> Locator:
    return card.get_by_label(re.compile(f"^{name}"))


def test_a_form_shows_known_values_and_calls_its_tool_when_submitted(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        page, card = console.page, form(console)
        await console.send(ASK)
        await expect(card).to_contain_text("Books a room of the studio.")
        await expect(field(card, "room")).to_have_value("Photo room")
        day = field(card, "day")
        await expect(day).to_have_value("")
        await expect(day).to_be_focused()
        await expect(page.get_by_text("Please complete the form.")).to_be_visible()
        await console.check_accessibility()
        # Using the keyboard only.
        await day.fill("2026-11-20")
        await day.press("Enter")
        confirmation = page.get_by_role("group", name="Confirmation")
        await expect(confirmation.locator(".preview")).to_have_text("Book the Photo room on 2026-11-20?")
        await expect(card).to_contain_text("You submitted this form.")
        await expect(card.locator("dd")).to_have_text(["Photo room", "2026-11-20"])
        await expect(card.get_by_role("textbox")).to_have_count(0)
        # The form takes the place of the user's message.
        await expect(page.locator(".message.user")).to_have_text([re.compile(re.escape(ASK))])
        assert booked(deployment) == []
        await console.check_accessibility()
        await confirmation.get_by_role("button", name="Approve").click()
        await expect(page.locator(".tool")).to_contain_text("done")
        assert booked(deployment) == ["Photo room"]
        await page.reload()
        await expect(card).to_contain_text("You submitted this form.")
        await expect(card.locator("dd")).to_have_text(["Photo room", "2026-11-20"])
        await expect(card.get_by_role("button")).to_have_count(0)

    browse(deployment, steps)


def test_optional_fields_without_a_value_are_folded(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        card = form(console, "kb_search")
        await console.send('form kb_search {"top_k": 3}')
        names = (
            card.get_by_role("textbox").or_(card.get_by_role("spinbutton")).or_(card.get_by_role("combobox"))
        )
        await expect(card.locator(".preview")).to_have_text(re.compile(r"^[^.]+\.$"))
        await expect(field(card, "query")).to_be_focused()
        await expect(field(card, "query")).to_be_in_viewport()
        await expect(field(card, "top_k")).to_have_value("3")
        await expect(names).to_have_count(2)
        await expect(card.get_by_role("button", name="Send")).to_be_in_viewport()
        await card.get_by_text(re.compile("^Optional fields")).click()
        await expect(field(card, "namespace")).to_be_visible()
        await console.check_accessibility()

    browse(deployment, steps)


def test_invalid_values_are_reported_at_their_fields(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        page, card = console.page, form(console)
        await console.send(ASK)
        room, day = field(card, "room"), field(card, "day")
        await room.fill("x")
        await card.get_by_role("button", name="Send").click()
        await expect(day).to_have_attribute("aria-invalid", "true")
        await expect(room).to_have_attribute("aria-invalid", "true")
        await expect(card.get_by_text("This field is required.")).to_be_visible()
        await expect(room).to_be_focused()
        await expect(page.locator(".tool")).to_have_count(0)
        await console.check_accessibility()
        await room.fill("Dark room")
        await day.fill("2026-11-21")
        await card.get_by_role("button", name="Send").click()
        preview = page.get_by_role("group", name="Confirmation").locator(".preview")
        await expect(preview).to_have_text("Book the Dark room on 2026-11-21?")

    browse(deployment, steps)


def test_a_dismissed_form_collapses_and_nothing_is_run(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        page, card = console.page, form(console)
        await console.send(ASK)
        await card.get_by_role("button", name="Dismiss").click()
        await expect(card).to_contain_text("This form was closed. The tool was not run.")
        await expect(field(card, "room")).to_have_count(0)
        await console.check_accessibility()
        await page.reload()
        await expect(card).to_contain_text("This form was closed.")
        # A newer form for the same tool replaces the open one.
        await console.send(ASK)
        await expect(card.nth(1).get_by_role("button", name="Send")).to_be_visible()
        await console.send('form book_room {"room": "Dark room"}')
        await expect(field(card.nth(2), "room")).to_have_value("Dark room")
        await expect(card.nth(1)).to_contain_text("This form was closed.")
        await expect(page.locator(".tool")).to_have_count(0)

    browse(deployment, steps)


def test_a_form_can_be_completed_after_a_reload_and_a_restart_of_the_host(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        page, card = console.page, form(console)
        await console.send(ASK)
        await expect(field(card, "room")).to_have_value("Photo room")
        await page.reload()
        await expect(field(card, "room")).to_have_value("Photo room")
        # An earlier form does not take the focus from the composer.
        await expect(page.get_by_label("Message")).to_be_focused()
        await deployment.stop(signal.SIGKILL)
        await field(card, "day").fill("2026-11-20")
        await card.get_by_role("button", name="Send").click()
        await expect(card).to_contain_text("Waiting for the connection.")
        await deployment.start()
        confirmation = page.get_by_role("group", name="Confirmation")
        await confirmation.get_by_role("button", name="Approve").click()
        await expect(page.locator(".tool")).to_contain_text("done")
        await expect(card).to_contain_text("You submitted this form.")

    browse(deployment, steps)
    assert booked(deployment) == ["Photo room"]


def test_a_form_sent_twice_runs_once(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        page, card = console.page, form(console, "count_stock")
        lines: list[WebSocketRoute] = []

        async def twice(route: WebSocketRoute) -> None:
            lines.append(route)
            host = route.connect_to_server()

            def pass_on(message: str | bytes) -> None:
                for _ in range(2 if '"form_submit"' in str(message) else 1):
                    host.send(message)

            route.on_message(pass_on)

        await page.route_web_socket("**/ws/text", twice)
        await page.reload()
        await console.send("form count_stock")
        (deployment.folder / "counted").touch()
        await field(card, "item").fill("lamps")
        await card.get_by_role("button", name="Send").click()
        await expect(page.locator(".tool")).to_contain_text("done")
        await console.send("hello")
        await expect(page.get_by_text("You said: hello")).to_be_visible()
        await expect(page.locator(".tool")).to_have_count(1)
        await expect(page.locator(".notice")).to_have_count(0)
        assert lines

    browse(deployment, steps)


def test_a_form_closed_in_another_window_says_so(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        page, card = console.page, form(console)
        hidden = ""

        async def without_end(route: WebSocketRoute) -> None:
            host = route.connect_to_server()

            def pass_on(message: str | bytes) -> None:
                nonlocal hidden
                if '"form_closed"' in str(message):
                    hidden = str(message)
                else:
                    route.send(message)

            host.on_message(pass_on)

        await page.route_web_socket("**/ws/text", without_end)
        await page.reload()
        await console.send(ASK)
        await card.get_by_role("button", name="Dismiss").click()
        await expect(card).to_contain_text("Closing")
        await field(card, "day").fill("2026-11-20")
        await card.get_by_role("button", name="Send").click()
        await expect(card).to_contain_text("This form has already been dismissed or replaced.")
        assert hidden

    browse(deployment, steps)
