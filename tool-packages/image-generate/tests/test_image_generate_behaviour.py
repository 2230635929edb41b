"""The order, the images shown to the client, and the answer for the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

import pytest
from jackfield import ErrorType, ToolError, ToolResponse
from jackfield.confirmation import render
from jackfield.contract.manifest import ToolManifest
from jackfield_capability_types.images import ImageOrder, StoredImage
from jackfield_testkit import MemoryImages, ToolTestContext
from jackfield_tool_image_generate.handler import execute

PACKAGE = resources.files("jackfield_tool_image_generate")
MANIFEST = ToolManifest.from_wire(json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8")))
DEFAULTS: dict[str, Any] = {"avoid": "", "shape": "square", "quality": "standard", "count": 1}


def call(context: ToolTestContext, **given: Any) -> ToolResponse:
    return asyncio.run(execute({**DEFAULTS, "prompt": "a boat", **given}, context))


def test_the_manifest_matches_the_tool_table() -> None:
    assert (MANIFEST.category, MANIFEST.side_effects, MANIFEST.idempotent) == ("action", "writes", False)
    assert (MANIFEST.allowed_modes, MANIFEST.latency_budget_ms, MANIFEST.timeout_ms) == (
        ("text",),
        5000,
        120_000,
    )
    assert (MANIFEST.requires_confirmation, MANIFEST.requires) == ("policy", ("images",))


def test_the_order_matches_the_arguments() -> None:
    images = MemoryImages()
    call(
        ToolTestContext(images=images),
        prompt=" a boat ",
        avoid="  text ",
        shape="portrait",
        quality="draft",
        count=2,
    )
    assert images.orders == [ImageOrder("a boat", "text", "portrait", "draft", 2)]


def test_every_image_is_shown_to_the_user_and_named_to_the_model() -> None:
    images = MemoryImages()
    context = ToolTestContext(images=images)
    data = call(context, count=2).data
    assert [event for event, _ in context.sent] == ["image", "image"]
    assert [fields["id"] for _, fields in context.sent] == [each["id"] for each in data["images"]]
    assert context.sent[0].fields["prompt"] == "a boat"
    for each in data["images"]:
        kept = asyncio.run(images.read(each["id"]))
        assert kept is not None
        assert len(kept[1]) == each["size"]
    assert context.progressed == [("drawing 2 pictures", None)]
    assert context.audited[0].fields["ids"] == [each["id"] for each in data["images"]]


class DisconnectedClient:
    """A client that has disconnected."""

    async def send(self, event: str, **fields: Any) -> None:
        raise ConnectionError("no client is connected")


def test_images_are_kept_without_a_connected_client() -> None:
    response = call(ToolTestContext(images=MemoryImages(), messaging=DisconnectedClient()))
    assert response.ok
    assert response.data["shown"] is False
    assert len(response.data["images"]) == 1


class IncompleteImages(MemoryImages):
    """A provider that returns one image too few."""

    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        return (await super().generate(order))[1:]


def test_missing_images_are_reported() -> None:
    data = call(ToolTestContext(images=IncompleteImages()), count=3).data
    assert len(data["images"]) == 2
    assert data["note"] == "The provider made 2 of 3 pictures."


@pytest.mark.parametrize(
    "kind", [ErrorType.PERMANENT, ErrorType.RATE_LIMIT, ErrorType.AUTH, ErrorType.TRANSIENT]
)
def test_a_provider_refusal_reaches_the_model_and_nothing_is_shown(kind: ErrorType) -> None:
    refusal = ToolError(kind, "No.", details={"retryAfterSeconds": 3})
    context = ToolTestContext(images=MemoryImages(refusal=refusal))
    with pytest.raises(ToolError) as raised:
        call(context)
    assert raised.value is refusal
    assert context.sent == []


def test_the_preview_describes_the_order() -> None:
    card = render(MANIFEST.preview, "image_generate", {**DEFAULTS, "prompt": "a boat", "count": 2})
    assert card == "Make 2 picture(s), square, standard quality: a boat"
