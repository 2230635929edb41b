"""The operations view shows experiments: the figures of each arm, and an abort by the guard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jackfield_testkit.site_packages import SitePackages
from playwright.async_api import expect

from browser.harness import Console, Deployment, chromium, open_console, run_with_chromium

ALLOW = (
    "exp-*",
    "jackfield-console",
    "jackfield-mcp-server",
    "jackfield-experiments",
    "jackfield-observability",
    "jackfield-policies",
    "jackfield-store-sqlite",
    "jackfield-transport-openai",
)

HANDLERS = {
    "": "async def execute(args, ctx):\n    return {}\n",
    "broken": "async def execute(args, ctx):\n    1 / 0\n",
}


@pytest.fixture
def experimental(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """A deployment whose only user gets a broken variant."""
    chromium()
    site = SitePackages(tmp_path / "site")
    for variant, handler in HANDLERS.items():
        site.tool(
            "look",
            distribution=f"exp-look{variant and '-'}{variant}",
            schema={"variant": variant} if variant else {},
            handler=handler,
        )
    site.frozen(*ALLOW)
    experiment = {
        "tool": "look",
        "variants": {"broken": 100},
        "guard": {"min_calls": 3, "max_error_percent": 10},
    }
    file = tmp_path / "experiments.json"
    file.write_text(json.dumps({"version": 4, "experiments": {"speed": experiment}}))
    monkeypatch.setenv("JACKFIELD_EXPERIMENTS", str(file))
    return Deployment(tmp_path, site.folder, allow=ALLOW)


async def call(console: Console) -> None:
    address = f"{console.deployment.address}/execute/look"
    await console.page.request.post(address, data={"arguments": {"text": "a"}})


def test_an_abort_appears_with_its_reason(experimental: Deployment) -> None:
    async def main() -> None:
        async with open_console(experimental) as console:
            await console.open("operations")
            shown = console.page.get_by_role("region", name="Experiments")
            await expect(shown.get_by_text("version 4")).to_be_visible()
            row = shown.get_by_role("row").filter(has_text="broken")
            await expect(row).to_contain_text("100 %")
            for _ in range(3):
                await call(console)
            await expect(shown.get_by_text("aborted", exact=True)).to_be_visible()
            await expect(shown).to_contain_text("100.0 % of 3 calls failed")
            await expect(row).to_contain_text("INTERNAL 3")
            tools = console.page.get_by_role("region", name="Tools")
            await expect(tools).to_contain_text("look:broken")
            await console.check_accessibility()

    run_with_chromium(main())
