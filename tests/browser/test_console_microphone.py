"""The microphone: the settings that the console requests, the choice of a device, and a blocked one."""

from __future__ import annotations

import asyncio

from jackfield_scripted import ScriptedModel
from playwright.async_api import expect

from browser.harness import Deployment, open_console, run_with_chromium

WATCH = """
window.wishes = [];
const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = (wishes) => { window.wishes.push(wishes); return ask(wishes); };
window.wishedFor = (count) => new Promise((resolve) => {
  const check = () => window.wishes.length < count ? setTimeout(check, 50) : resolve(window.wishes);
  check();
});
"""
"""Records what the page asks for.

The page itself waits: `wait_for_function` evaluates a string in it, which the content security policy
forbids.
"""


async def _silent(model: ScriptedModel) -> None:
    await model.hears()


def test_a_call_uses_the_microphone_that_the_user_allows_and_chooses(deployment: Deployment) -> None:
    async def run() -> None:
        args = ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream=device-count=2"]
        async with asyncio.timeout(90), open_console(deployment, _silent, args=args) as console:
            await console.context.add_init_script(WATCH)
            await console.open()
            page = console.page
            await expect(page.get_by_test_id("state")).to_have_text("ready")
            await page.get_by_role("button", name="Start a voice call", exact=True).click()
            await expect(page.get_by_role("group", name="Call")).to_be_visible()
            (wishes,) = await page.evaluate("window.wishedFor(1)")
            asked = wishes["audio"]
            assert asked["echoCancellation"] is True
            assert asked["noiseSuppression"] is True
            assert asked["autoGainControl"] is True
            assert asked["channelCount"] == 1

            # The user chooses another microphone, and its level is shown.
            choice = page.get_by_role("combobox", name="Microphone")
            other = await choice.locator("option:not([selected])").last.get_attribute("value")
            await choice.select_option(other)
            assert (await page.evaluate("window.wishedFor(2)"))[1]["audio"]["deviceId"] == {"ideal": other}
            await expect(page.get_by_role("meter")).not_to_have_attribute("aria-valuenow", "0")
            await console.check_accessibility()

            # If the browser blocks the microphone, the page says how to allow it, and does not start a call.
            await page.evaluate("navigator.permissions.query = async () => ({ state: 'denied' })")
            await page.get_by_role("button", name="Hang up").click()
            await page.get_by_role("button", name="Start a voice call", exact=True).click()
            dialog = page.get_by_role("dialog", name="Microphone")
            await expect(dialog).to_contain_text("The microphone is blocked")
            await expect(dialog).to_contain_text("set Microphone to Allow")
            await console.check_accessibility()
            await dialog.get_by_role("button", name="Close").click()
            await expect(page.get_by_role("group", name="Call")).to_be_hidden()

    run_with_chromium(run())
