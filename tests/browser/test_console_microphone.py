"""The microphone settings that the console requests from the browser."""

from __future__ import annotations

import asyncio

from jackfield_scripted import ScriptedModel
from playwright.async_api import expect

from browser.harness import Deployment, open_console, run_with_chromium

WATCH = """
window.wishes = [];
const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = (wishes) => { window.wishes.push(wishes); return ask(wishes); };
"""


async def _silent(model: ScriptedModel) -> None:
    await model.hears()


def test_the_browser_cancels_echo_and_noise_and_controls_the_gain(deployment: Deployment) -> None:
    async def run() -> None:
        args = ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"]
        async with asyncio.timeout(90), open_console(deployment, _silent, args=args) as console:
            await console.context.add_init_script(WATCH)
            await console.open()
            page = console.page
            await expect(page.get_by_test_id("state")).to_have_text("ready")
            await page.get_by_role("button", name="Start a call", exact=True).click()
            await expect(page.get_by_role("group", name="Call")).to_be_visible()
            await page.wait_for_function("window.wishes.length > 0")
            (wishes,) = await page.evaluate("window.wishes")
            asked = wishes["audio"]
            assert asked["echoCancellation"] is True
            assert asked["noiseSuppression"] is True
            assert asked["autoGainControl"] is True
            assert asked["channelCount"] == 1

    run_with_chromium(run())
