"""The policy in the chain: which images need confirmation, and the preview."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jackfield_images
import jackfield_policies
import pytest
from jackfield.offers import CapabilityOffer, PluginSettings, Services
from jackfield.settings import SettingsError, parse_offer
from jackfield_testkit import ImageServer
from jackfield_testkit.runtime import TestRuntime, make_tool
from jackfield_tool_image_generate.handler import execute

SCHEMA = json.loads(
    resources.files("jackfield_tool_image_generate").joinpath("schema.json").read_text("utf-8")
)
POLICIES = [*jackfield_policies.jackfield_policies(), *jackfield_images.jackfield_policies()]
PRICES = {"openai": {"gpt-image-2": {"draft": 0.005, "standard": 0.05, "high": 0.17}}}
ASKED = "Please draw me a lighthouse"


@pytest.fixture
def server() -> Iterator[ImageServer]:
    with ImageServer() as server:
        yield server


class ImageSession:
    """A session with the real tool, the real policies, and a provider on a socket."""

    def __init__(self, server: ImageServer, folder: Path, *, prices: Any = PRICES, **settings: Any) -> None:
        said = {
            "provider": "openai",
            "base_url": server.openai_url,
            "folder": str(folder),
            "prices": prices,
        }
        (offer,) = jackfield_images.jackfield_capabilities()

        def create(_: PluginSettings, services: Services) -> Any:
            self.images = offer.create(parse_offer("capabilities", offer, said), services)
            return self.images

        fields = {name: value for name, value in SCHEMA.items() if name not in ("$schema", "toolId")}
        self.work = TestRuntime(
            make_tool("image_generate", execute, **fields),
            make_tool("other", execute, requiresConfirmation="policy"),
            policies=POLICIES,
            capabilities=[CapabilityOffer("images", create)],
            settings={"image_consent": settings},
        )
        self.session = self.work.session()

    def ask(self, said: str, **arguments: Any) -> dict[str, Any]:
        async def main() -> bytes:
            self.session.begin_turn()
            self.session.add_user_text(said)
            given = json.dumps({"prompt": "a lighthouse", **arguments})
            answer = await self.work.call(self.session, "image_generate", given)
            await self.images.close()
            return answer.wire

        envelope: dict[str, Any] = json.loads(asyncio.run(main()))
        return envelope

    def card(self, said: str, **arguments: Any) -> list[str]:
        envelope = self.ask(said, **arguments)
        assert envelope["error"]["type"] == "CONFIRMATION_REQUIRED"
        lines: list[str] = envelope["error"]["confirmation_request"]["preview"].splitlines()
        return lines[1:]


def test_a_cheap_requested_image_is_generated_at_once(server: ImageServer, tmp_path: Path) -> None:
    images = ImageSession(server, tmp_path)
    envelope = images.ask(ASKED)
    assert envelope["ok"]
    (image,) = envelope["data"]["images"]
    shown = [fields for event, fields in images.work.events if event == "image"]
    assert [fields["id"] for fields in shown] == [image["id"]]
    assert (tmp_path / f"{image['id']}.png").stat().st_size == image["size"]


@pytest.mark.parametrize("said", ["", "Tell me about lighthouses", "Don't draw anything, just describe it"])
def test_an_unrequested_image_needs_confirmation(said: str, server: ImageServer, tmp_path: Path) -> None:
    lines = ImageSession(server, tmp_path).card(said)
    assert lines == ["You did not ask for an image explicitly.", "It costs about $0.05."]
    assert server.requests == []
    assert list(tmp_path.iterdir()) == []


def test_an_expensive_requested_image_needs_confirmation(server: ImageServer, tmp_path: Path) -> None:
    images = ImageSession(server, tmp_path)
    assert images.card(ASKED, quality="high") == ["It costs about $0.17, over the limit of $0.10."]
    assert images.card(ASKED, count=3) == ["It costs about $0.15, over the limit of $0.10."]
    assert images.card("hello", quality="high") == [
        "You did not ask for an image explicitly.",
        "It costs about $0.17, over the limit of $0.10.",
    ]
    assert server.requests == []
    assert images.ask(ASKED, quality="draft", count=4)["ok"]


def test_an_unknown_cost_exceeds_every_limit(server: ImageServer, tmp_path: Path) -> None:
    assert ImageSession(server, tmp_path, prices={}, cost_limit=1000).card(ASKED) == [
        "The price is not known."
    ]


def test_the_cost_limit_is_configurable(server: ImageServer, tmp_path: Path) -> None:
    assert ImageSession(server, tmp_path, cost_limit=0.17).ask(ASKED, quality="high")["ok"]
    assert ImageSession(server, tmp_path, cost_limit=0).card(ASKED, quality="draft") == [
        "It costs about $0.005, over the limit of $0.00."
    ]


def test_requests_of_earlier_turns_do_not_count(server: ImageServer, tmp_path: Path) -> None:
    images = ImageSession(server, tmp_path)
    assert images.ask(ASKED)["ok"]
    assert images.card("And how old is it?", count=1, prompt="another")[0].startswith("You did not ask")


def test_an_approved_image_is_generated_at_any_cost(server: ImageServer, tmp_path: Path) -> None:
    images = ImageSession(server, tmp_path)
    images.card("hello", quality="high")
    token = next(fields["token"] for event, fields in images.work.events if event == "confirmation_required")

    async def main() -> dict[str, Any]:
        answer = await images.work.resolve(images.session, token)
        assert answer is not None
        await images.images.close()
        envelope: dict[str, Any] = json.loads(answer.wire)
        return envelope

    assert asyncio.run(main())["ok"]
    assert server.requests[0].body["quality"] == "high"


def test_other_tools_are_ignored(server: ImageServer, tmp_path: Path) -> None:
    images = ImageSession(server, tmp_path)

    async def main() -> dict[str, Any]:
        images.session.add_user_text(ASKED)
        envelope: dict[str, Any] = json.loads((await images.work.call(images.session, "other")).wire)
        return envelope

    assert asyncio.run(main())["error"]["type"] == "CONFIRMATION_REQUIRED"


def test_configured_words_replace_the_english_ones(server: ImageServer, tmp_path: Path) -> None:
    full_prompt = {
        "drawing_verbs": ["Zeichne"],
        "verbs": ["mach"],
        "nouns": ["Bild"],
        "negations": ["nicht", "kein"],
    }
    images = ImageSession(server, tmp_path, **full_prompt)
    assert images.ask("Bitte zeichne mir einen Leuchtturm")["ok"]
    assert images.card("Mach kein Bild", prompt="two")[0].startswith("You did not ask")


_AMOUNT = "cost_limit: expected a number of US dollars, at least 0, got"
_WORDS = "expected a non-empty list of entries, each a word or phrase, got"


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"cost_limits": 1}, "cost_limits: unknown setting; did you mean 'cost_limit'?"),
        ({"cost_limit": "cheap"}, f"{_AMOUNT} 'cheap'"),
        ({"cost_limit": -1}, f"{_AMOUNT} -1"),
        ({"cost_limit": float("inf")}, f"{_AMOUNT} inf"),
        ({"cost_limit": True}, f"{_AMOUNT} true"),
        ({"nouns": "bild"}, f"nouns: {_WORDS} 'bild'; write ['bild']"),
        ({"nouns": []}, f"nouns: {_WORDS} []"),
        ({"verbs": [1]}, "verbs[0]: expected a word or phrase, got 1"),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(settings: Any, fault: str) -> None:
    (offer,) = jackfield_images.jackfield_policies()
    with pytest.raises(SettingsError) as raised:
        parse_offer("policies", offer, settings)
    assert str(raised.value) == f"[policies.image_consent] {fault}"
