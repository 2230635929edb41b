"""The chat view in text: the empty page, answers, tools, confirmations and failures."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from jackfield_host.security.api_keys import new_key
from jackfield_scripted import Script, ScriptedCall, ScriptedModel
from playwright.async_api import WebSocketRoute, expect

from browser.harness import Console, Deployment, open_console, run_with_chromium

Steps = Callable[[Console], Awaitable[None]]


def browse(deployment: Deployment, steps: Steps, *scripts: Script, **options: Any) -> None:
    """Run the steps in a new browser window."""

    async def run() -> None:
        async with asyncio.timeout(300), open_console(deployment, *scripts, **options) as console:
            await console.open()
            await steps(console)

    run_with_chromium(run())


async def answers(model: ScriptedModel) -> None:
    """A model that answers one message."""
    await model.hears()
    await model.says("Good morning.")


def test_an_empty_page_suggests_messages_and_explains_how_to_add_a_tool(deployment: Deployment) -> None:
    heard: list[str] = []

    async def script(model: ScriptedModel) -> None:
        heard.append((await model.hears()).text)
        await model.says("In the booking sheet.")

    async def steps(console: Console) -> None:
        page = console.page
        await expect(page.get_by_role("heading", name="What can I do for you?")).to_be_visible()
        provider = page.get_by_test_id("provider")
        await expect(provider).to_contain_text("Provider: openai (the provider setting names it)")
        await page.get_by_text("How to add a tool").click()
        steps = page.locator(".steps")
        await expect(steps).to_contain_text(f". {sys.prefix}/bin/activate")
        for command in ("pip install NAME", "jackfield new-tool my_tool", "pip install -e my-tool"):
            await expect(steps).to_contain_text(command)
        await page.get_by_text("tools available").click()
        await expect(page.get_by_text("Books a room of the studio.")).to_be_visible()
        await expect(page.get_by_text("openai · text · registry 1.0.")).to_be_visible()
        await console.check_accessibility()
        await page.get_by_role("button", name="How do I book the photo room?").click()
        await expect(page.get_by_text("In the booking sheet.")).to_be_visible()
        await expect(page.get_by_role("heading", name="What can I do for you?")).to_be_hidden()

    browse(deployment, steps, script)
    assert heard == ["How do I book the photo room?"]


def test_an_answer_that_says_what_was_not_done_is_marked_and_the_mark_survives_a_reload(
    deployment: Deployment,
) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("I have booked the room for you.")
        await model.hears()
        await model.says("Sorry, nothing was booked.")
        await asyncio.Event().wait()

    async def steps(console: Console) -> None:
        page = console.page
        await console.send("Book the photo room.")
        said = page.locator(".message.assistant")
        for _ in range(2):
            wrong, right = said.nth(0), said.nth(1)
            await expect(wrong.get_by_text("unbacked claim")).to_be_visible()
            await expect(wrong).to_contain_text("book_room was not called.")
            await expect(right).to_contain_text("Sorry, nothing was booked.")
            await expect(right.get_by_text("unbacked claim")).to_have_count(0)
            await page.reload()

    browse(deployment, steps, script)


def test_an_answer_is_rendered_and_its_citation_opens_the_record(deployment: Deployment) -> None:
    found: dict[str, Any] = {}

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        envelopes = await model.calls(ScriptedCall("kb_search", {"query": "book the photo room", "top_k": 2}))
        (envelope,) = envelopes.values()
        found.update(envelope["data"]["results"][0])
        await model.says(
            "**Two** steps:\n\n1. Ask.\n2. Book.\n\n"
            f"Source: {found['title']} [{found['id']}] <script>alert(1)</script>"
        )

    async def steps(console: Console) -> None:
        page = console.page
        await console.send("How do I book the photo room?")
        said = page.locator(".message.assistant")
        await expect(said.locator("strong")).to_have_text("Two")
        await expect(said.locator("ol > li")).to_have_count(2)
        await expect(said).to_contain_text("<script>")
        card = page.locator(".tool")
        await expect(card).to_contain_text("done")
        await expect(card).to_contain_text("800 ms)")
        await card.locator("summary").click()
        await expect(card.get_by_label("Arguments")).to_contain_text('"query": "book the photo room"')
        await expect(card.get_by_label("Result")).to_contain_text(found["id"])
        await expect(page.locator("code:visible", has_text="kb_search")).to_have_count(1)
        await expect(said.locator(".chip")).to_have_count(1)
        await said.get_by_role("button", name=found["title"]).click()
        record = page.get_by_role("region", name="Source")
        await expect(record.get_by_role("heading", name=found["title"]).first).to_be_visible()
        await expect(record).to_contain_text(found["id"])
        # The search result has an excerpt only; the panel shows the complete record.
        await expect(record).to_contain_text("Tags")
        await console.check_accessibility()
        await record.get_by_role("button", name="Close").click()
        await expect(record).to_be_hidden()
        await expect(said.get_by_role("button", name=found["title"])).to_be_focused()

    browse(deployment, steps, script)


async def books(model: ScriptedModel) -> None:
    """A model that books a room and reports the outcome."""
    await model.hears()
    await model.calls(ScriptedCall("book_room", {"room": "Photo room", "day": "2026-11-20"}))
    await model.says("Please confirm.")
    await model.hears()
    await model.says("It is booked." if "The user approved" in str(model.received) else "Then not.")


def booked(deployment: Deployment) -> list[str]:
    file = deployment.folder / "booked.txt"
    return file.read_text().splitlines() if file.exists() else []


def test_a_second_search_without_a_result_is_shown_as_stopped_and_not_as_a_failure(
    deployment: Deployment,
) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        # The sample has no personal records.
        for query in ("qqzx", "qqzy"):
            await model.calls(ScriptedCall("kb_search", {"query": query, "namespace": "personal"}))
        await model.says("I found nothing.")

    async def steps(console: Console) -> None:
        page = console.page
        await console.send("What do you know about qqzx?")
        await expect(page.get_by_text("I found nothing.")).to_be_visible()
        first, second = page.locator(".tool").nth(0), page.locator(".tool").nth(1)
        await expect(first.locator(".tag")).to_have_text("done")
        await expect(second.locator(".tag")).to_have_text("stopped")
        await expect(second).to_contain_text("kb_search found nothing 2 times in this turn")
        await expect(second).not_to_contain_text("had already made the same call")

    browse(deployment, steps, script)


def test_a_call_runs_once_and_only_after_its_approval(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        page = console.page
        await console.send("Book the photo room")
        card = page.get_by_role("group", name="Confirmation")
        await expect(card.locator(".preview")).to_have_text("Book the Photo room on 2026-11-20?")
        await expect(card.get_by_text("The key is at the desk.")).to_be_visible()
        await expect(card.get_by_role("definition").first).to_be_hidden()
        await card.get_by_text("Arguments").click()
        await expect(card.get_by_role("definition")).to_have_text(["Photo room", "2026-11-20"])
        await expect(card).to_contain_text("Expires in")
        await expect(page.get_by_text("Please confirm.")).to_be_visible()
        await expect(page.locator(".tool .tag")).to_have_text("waiting for you")
        await expect(page.get_by_test_id("state")).to_have_text("waiting for you")
        await expect(page.locator("code:visible", has_text="book_room")).to_have_count(1)
        await console.check_accessibility()
        assert booked(deployment) == []
        await card.get_by_role("button", name="Approve").click()
        await expect(card).to_contain_text("You approved this call.")
        await expect(page.get_by_text("It is booked.")).to_be_visible()
        await expect(page.locator(".tool")).to_contain_text("done")
        assert booked(deployment) == ["Photo room"]
        # After a reload, the decision is shown and the user is not asked again.
        await page.reload()
        await expect(card).to_contain_text("You approved this call.")
        await expect(card.get_by_role("button")).to_have_count(0)
        await expect(page.get_by_text("It is booked.")).to_be_visible()

    browse(deployment, steps, books)
    assert booked(deployment) == ["Photo room"]


def test_a_declined_call_is_not_run(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        await console.send("Book the photo room")
        card = console.page.get_by_role("group", name="Confirmation")
        await card.get_by_role("button", name="Decline").click()
        await expect(card).to_contain_text("You declined this call. It was not run.")
        await expect(console.page.get_by_text("Then not.")).to_be_visible()
        await expect(console.page.locator(".tool")).to_contain_text("declined")

    browse(deployment, steps, books)
    assert booked(deployment) == []


def test_a_confirmation_counts_down_and_expires(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        await console.send("Book the photo room")
        card = console.page.get_by_role("group", name="Confirmation")
        await expect(card).to_contain_text("Expires in 0:0")
        for _ in range(2):
            await expect(card).to_contain_text("This confirmation request has expired.")
            await expect(card.get_by_role("button")).to_have_count(0)
            await expect(console.page.locator(".tool .tag")).to_have_text("expired")
            await expect(console.page.get_by_test_id("state")).to_have_text("ready")
            await console.check_accessibility()
            await console.page.reload()

    browse(deployment, steps, books, more="[policies.confirmation]\nexpiry_seconds = 2")
    assert booked(deployment) == []


def test_a_countdown_continues_after_a_reload(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        def age(route: WebSocketRoute) -> None:
            server = route.connect_to_server()

            def pass_on(message: str | bytes) -> None:
                told = json.loads(message)
                if "at" in told:
                    told["at"] -= 60
                if "expiresAt" in told:
                    told["expiresAt"] -= 60
                route.send(json.dumps(told))

            server.on_message(pass_on)

        page = console.page
        card = page.get_by_role("group", name="Confirmation")
        await console.send("Book the photo room")
        await expect(card).to_contain_text(re.compile(r"Expires in 1:(40|3\d)"))
        # As if a minute had passed since the events.
        await page.route_web_socket(re.compile("/ws/text"), age)
        await page.reload()
        await expect(card).to_contain_text(re.compile(r"Expires in 0:(40|3\d)"))

    browse(deployment, steps, books, more="[policies.confirmation]\nexpiry_seconds = 100")


def test_a_late_decision_closes_the_card_and_says_why(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        # The page gets a later expiry than the host has.
        def prolong(route: WebSocketRoute) -> None:
            server = route.connect_to_server()

            def pass_on(message: str | bytes) -> None:
                told = json.loads(message) if isinstance(message, str) else {}
                if told.get("type") == "confirmation_required":
                    message = json.dumps({**told, "expiresAt": told["expiresAt"] + 600})
                route.send(message)

            server.on_message(pass_on)

        page = console.page
        await page.route_web_socket(re.compile("/ws/text"), prolong)
        await page.reload()
        await console.send("Book the photo room")
        card = page.get_by_role("group", name="Confirmation")
        await expect(card).to_contain_text("Expires in 10:00")
        await asyncio.sleep(1)  # The host's own expiry; there is no event for it.
        await card.get_by_role("button", name="Approve").click()
        await expect(card).to_contain_text("This confirmation request has expired. The tool was not run.")
        await expect(card.get_by_role("button")).to_have_count(0)
        await expect(page.locator(".tool")).to_contain_text("Expired: the call was not confirmed in time")
        await expect(page.get_by_text("Then not.")).to_be_visible()

    browse(deployment, steps, books, more="[policies.confirmation]\nexpiry_seconds = 1")
    assert booked(deployment) == []


def test_a_call_declined_in_another_window_closes_its_card(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        sessions: list[str] = []
        cards: list[str] = []

        def overhear(route: WebSocketRoute) -> None:
            server = route.connect_to_server()

            def pass_on(message: str | bytes) -> None:
                told = json.loads(message) if isinstance(message, str) else {}
                if told.get("type") == "session":
                    sessions.append(told["token"])
                if told.get("type") == "confirmation_required":
                    cards.append(told["token"])
                # Withhold the decision of the other window.
                if told.get("type") != "confirmation_settled":
                    route.send(message)

            server.on_message(pass_on)

        page = console.page
        await page.route_web_socket(re.compile("/ws/text"), overhear)
        await page.reload()
        await console.send("Book the photo room")
        card = page.get_by_role("group", name="Confirmation")
        await expect(card.get_by_role("button", name="Approve")).to_be_visible()
        await page.request.post(
            f"{deployment.address}/confirmations/{cards[-1]}",
            data={"approve": False},
            headers={"Jackfield-Session": sessions[-1]},
        )
        await card.get_by_role("button", name="Approve").click()
        await expect(card).to_contain_text("This call has already been declined; it was not run.")
        await expect(card.get_by_role("button")).to_have_count(0)

    browse(deployment, steps, books)
    assert booked(deployment) == []


def test_a_call_in_doubt_is_shown_until_an_operator_settles_it(deployment: Deployment) -> None:
    name = "<img src=x onerror=alert(1)>"

    async def asks(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("book_room", {"room": name, "day": "2026-11-20"}))
        await model.says("Please confirm.")

    async def learns(model: ScriptedModel) -> None:
        while True:
            await model.hears()
            await model.says("I see.")

    async def steps(console: Console) -> None:
        page = console.page
        (deployment.folder / "held").touch()
        await console.send("Book the photo room")
        await page.get_by_role("button", name="Approve").click()
        async with asyncio.timeout(60):
            while not booked(deployment):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        card = page.get_by_role("group", name="Confirmation")
        # Before the host is killed: the tool may act before the page hears that the approval was recorded.
        await expect(card).to_contain_text("You approved this call.")
        await deployment.stop(signal.SIGKILL)
        await deployment.start()
        tool = page.locator(".tool")
        await expect(tool).to_contain_text("In doubt: the call may or may not have taken effect.")
        await expect(tool.locator(".tag")).to_have_text("in doubt")
        await expect(page.get_by_text("failed")).to_have_count(0)
        await expect(card).to_contain_text("You approved this call.")
        await console.check_accessibility()

        operations = await console.context.new_page()
        await operations.goto(f"{deployment.address}/#/operations")
        doubts = operations.get_by_role("region", name="Calls in doubt")
        await expect(doubts).to_contain_text("book_room")
        await expect(doubts.get_by_label("Arguments of book_room")).to_contain_text(name)
        await doubts.get_by_role("button", name="Record as run").click()
        await operations.get_by_role("dialog").get_by_role("button", name="Record as run").click()
        await expect(operations.get_by_text("The call to book_room was recorded as run.")).to_be_visible()
        await expect(doubts).to_be_hidden()
        await expect(tool.locator(".tag")).to_have_text("done")

    browse(deployment, steps, asks, learns)
    assert booked(deployment) == [name]


def test_an_approval_of_another_call_is_refused_and_explained(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        def swap(route: WebSocketRoute) -> None:
            server = route.connect_to_server()

            def pass_on(message: str | bytes) -> None:
                if isinstance(message, str) and '"approve"' in message:
                    message = json.dumps({"type": "approve", "token": "0" * 32})
                server.send(message)

            route.on_message(pass_on)

        await console.page.route_web_socket(re.compile("/ws/text"), swap)
        await console.page.reload()
        await console.send("Book the photo room")
        card = console.page.get_by_role("group", name="Confirmation")
        await card.get_by_role("button", name="Approve").click()
        await expect(card).to_contain_text("This session has no such confirmation")
        await expect(card.get_by_role("button")).to_have_count(0)

    browse(deployment, steps, books)
    assert booked(deployment) == []


async def counts(model: ScriptedModel) -> None:
    """A model that calls count_stock and reports the outcome."""
    await model.hears()
    envelopes = await model.calls(ScriptedCall("count_stock", {"item": "lamps"}))
    (envelope,) = envelopes.values()
    await model.says("There are 12." if envelope["ok"] else "Then I stop.")


def test_a_tool_shows_its_progress_and_can_be_cancelled(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        page = console.page
        await console.send("Count the lamps")
        card = page.locator(".tool")
        await expect(card).to_contain_text("running")
        await expect(card).to_contain_text("Shelf 2 of 4")
        await expect(card.get_by_role("progressbar")).to_have_js_property("value", 0.5)
        await expect(card.get_by_label("Result so far")).to_have_text("5 on shelf 1, 7 on shelf 2")
        await expect(page.get_by_test_id("state")).to_have_text("using a tool")
        await console.check_accessibility()
        await card.get_by_role("button", name="Cancel").click()
        await expect(card).to_contain_text("failed")
        shown = card.get_by_label("Partial output; the call ended without returning a result")
        await expect(shown).to_have_text("5 on shelf 1, 7 on shelf 2")
        await expect(page.get_by_text("Then I stop.")).to_be_visible()
        await expect(page.get_by_test_id("state")).to_have_text("ready")

    browse(deployment, steps, counts)


def test_a_host_killed_during_a_call_loses_nothing(deployment: Deployment) -> None:
    told = [""]

    async def after(model: ScriptedModel) -> None:
        # The result of the count and the user's next message arrive in either order.
        while True:
            heard = (await model.hears()).text
            told[:] = [str(model.received).replace(" ", "").replace("\\", "")]
            await model.says("And 4 chairs." if "chairs" in heard else "There are 12 lamps.")

    async def steps(console: Console) -> None:
        page = console.page
        await console.send("Count the lamps")
        await expect(page.locator(".tool")).to_contain_text("Shelf 2 of 4")
        await deployment.stop(signal.SIGKILL)
        await expect(page.get_by_test_id("state")).to_have_text("reconnecting")
        await expect(page.get_by_text("Connection lost.")).to_be_visible()
        await console.check_accessibility()
        await console.send("And the chairs?")
        await expect(page.get_by_text("waiting for the connection")).to_be_visible()
        (deployment.folder / "counted").touch()
        await deployment.start()
        await expect(page.locator(".tool")).to_contain_text("done")
        await expect(page.get_by_text("Connection lost.")).to_be_hidden()
        await expect(page.get_by_text("And 4 chairs.")).to_be_visible()
        await expect(page.locator(".message.user")).to_have_text([re.compile("Count"), re.compile("chairs")])
        await expect(page.locator(".tool")).to_have_count(1)
        # The new model connection has the result, and got the question about the chairs once.
        async with asyncio.timeout(60):
            while not ('"lamps":12' in told[0] and "Andthechairs?" in told[0]):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    browse(deployment, steps, counts, after)
    assert told[0].count("Andthechairs?") == 1


def test_a_banned_user_sees_a_countdown_and_can_continue_after_it(deployment: Deployment) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        arguments = {"duration_seconds": 30, "farewell_message": "Enough for now."}
        await model.calls(ScriptedCall("ignore_user", arguments))
        await model.says("Goodbye.")

    async def steps(console: Console) -> None:
        page = console.page
        await page.clock.install()
        await page.reload()
        await console.send("You fool")
        banner = page.get_by_role("alert")
        await expect(banner).to_contain_text("Enough for now.")
        await expect(banner).to_contain_text(re.compile(r"You can continue in 0:(2\d|30)"))
        await expect(page.get_by_label("Message")).to_be_disabled()
        await expect(page.get_by_test_id("state")).to_have_text("banned")
        await console.check_accessibility()
        # After a reload, the page is rejected and shows the ban too.
        await page.reload()
        await expect(banner).to_contain_text(re.compile(r"You can continue in 0:(1\d|2\d|30)"))
        await expect(page.get_by_test_id("state")).to_have_text("banned")
        await expect(page.get_by_role("button", name="Go on here")).to_have_count(0)
        await page.clock.fast_forward(5_000)
        await expect(banner).to_contain_text(re.compile(r"You can continue in 0:[012]\d"))

    browse(deployment, steps, script)


def test_a_window_above_the_session_limit_says_so_once_and_connects_later(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        await expect(console.page.get_by_test_id("state")).to_have_text("ready")
        second = await console.context.new_page()
        tries: list[str] = []
        second.on("websocket", lambda socket: tries.append(socket.url))
        await second.goto(f"{deployment.address}/#/chat")
        said = second.get_by_text("You have too many sessions")
        await expect(said).to_contain_text("Close another console window")
        await expect(second.get_by_test_id("state")).to_have_text("waiting for another session to end")
        await expect(second.get_by_label("Message")).to_be_disabled()
        before = len(tries)
        async with second.expect_websocket():
            await second.get_by_role("button", name="Try now").click()
        assert len(tries) > before
        await expect(said).to_have_count(1)
        await console.page.close()
        await expect(second.get_by_test_id("state")).to_have_text("ready")
        await expect(said).to_have_count(0)
        await expect(second.get_by_label("Message")).to_be_enabled()

    browse(deployment, steps, answers, answers, host="sessions_per_user = 1")


def test_an_answer_that_continues_after_a_call_is_shown_below_it(deployment: Deployment) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("format_datetime", {"datetime": "2026-03-01T10:00:00Z"}))
        await model.says("It is ten.")

    async def steps(console: Console) -> None:
        def preface(route: WebSocketRoute) -> None:
            server = route.connect_to_server()

            def pass_on(message: str | bytes) -> None:
                if isinstance(message, str) and json.loads(message)["type"] == "tool_start":
                    begun = {"type": "text_delta", "answer": 1, "offset": 0, "text": "One moment."}
                    route.send(json.dumps(begun))
                route.send(message)

            server.on_message(pass_on)

        await console.page.route_web_socket(re.compile("/ws/text"), preface)
        await console.page.reload()
        await console.send("What time is it?")
        shown = console.page.locator(".conversation > li")
        await expect(shown).to_have_text(
            [re.compile("What time"), re.compile("format_datetime"), re.compile("ten")]
        )

    browse(deployment, steps, script)


def test_the_console_asks_for_a_required_token(deployment: Deployment) -> None:
    key = new_key("desk", "ada")

    async def steps(console: Console) -> None:
        page = console.page
        dialog = page.get_by_role("dialog", name="Token")
        await expect(dialog).to_contain_text("Ask the operator for one.")
        await expect(dialog).not_to_contain_text("Authorization")
        await console.check_accessibility()
        await dialog.get_by_label("Token").fill("jf_nonsense")
        await dialog.get_by_role("button", name="Sign in").click()
        await expect(dialog.get_by_label("Token")).to_have_value("")
        await dialog.get_by_label("Token").fill(key.key)
        await dialog.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_test_id("state")).to_have_text("ready")
        await console.send("Hello")
        await expect(page.get_by_text("Good morning.")).to_be_visible()

    browse(deployment, steps, answers, more=key.lines)


def test_the_page_loads_less_than_200_kilobytes(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        page = console.page
        await expect(page.get_by_test_id("state")).to_have_text("ready")
        loaded = await page.evaluate(
            """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
               .map(({ name, decodedBodySize }) => [name, decodedBodySize])"""
        )
        assert len(loaded) > 10
        assert sum(size for _, size in loaded) < 200_000, loaded
        assert all(name.startswith(deployment.address) for name, _ in loaded)

    browse(deployment, steps, answers)


def test_only_the_consoles_files_are_served_with_their_media_types(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        ask = console.context.request
        first = await ask.get(f"{deployment.address}/console/js/app.js")
        assert first.headers["content-type"].startswith("text/javascript")
        assert "default-src 'self'" in first.headers["content-security-policy"]
        known = {"If-None-Match": first.headers["etag"]}
        assert (await ask.get(f"{deployment.address}/console/js/app.js", headers=known)).status == 304
        for path in ("nothing.js", "..%2Fapp.py", "js/../../app.py", "%2Fetc%2Fpasswd", "js", ""):
            assert (await ask.get(f"{deployment.address}/console/{path}")).status in (404, 405), path

    browse(deployment, steps, answers)


def test_rendered_markdown_is_sanitised(deployment: Deployment) -> None:
    async def rendered(console: Console, markdown: str) -> str:
        answer = await console.context.request.post(
            f"{deployment.address}/render", data={"markdown": markdown}
        )
        assert answer.ok, await answer.text()
        html: str = (await answer.json())["html"]
        return html

    async def steps(console: Console) -> None:
        assert "<strong>bold</strong>" in await rendered(console, "**bold**")
        assert "<td>1</td>" in await rendered(console, "|a|\n|-|\n|1|")
        link = await rendered(console, "[here](https://example.org/a)")
        assert 'href="https://example.org/a"' in link
        assert "noopener" in link
        for harm in (
            "<img src=x onerror=alert(1)>",
            "[x](javascript:alert(1))",
            "![x](https://example.org/seen.png)",
            "<a href='data:text/html,x'>x</a>",
            "[x](//example.org)",
        ):
            html = await rendered(console, harm)
            assert not re.search(r"<img|<[^>]*onerror|href=\"(javascript|data|//)", html), html
        long = await console.context.request.post(
            f"{deployment.address}/render", data={"markdown": "x" * 64_001}
        )
        assert long.status == 400

    browse(deployment, steps, answers)
