"""Generates images and asks the user's client to show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield_capability_types.images import ImageOrder, StoredImage


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Generate the images; provider errors reach the model unchanged."""
    prompt = args["prompt"].strip()
    if not prompt:
        return fail(
            ErrorType.PERMANENT, "The prompt is blank.", suggestion="Say what the picture should show."
        )
    order = ImageOrder(prompt, args["avoid"].strip(), args["shape"], args["quality"], args["count"])
    await ctx.progress("drawing" if order.count == 1 else f"drawing {order.count} pictures")
    made: Sequence[StoredImage] = await ctx.images.generate(order)
    shown = await _show(ctx, made)
    first = made[0]
    ctx.audit("images_made", ids=[each.id for each in made], provider=first.provider, model=first.model)
    data: dict[str, Any] = {
        "images": [_wire(each) for each in made],
        "shown": shown,
        "provider": first.provider,
        "model": first.model,
    }
    if len(made) < order.count:
        data["note"] = f"The provider made {len(made)} of {order.count} pictures."
    return ok(data)


async def _show(ctx: ToolContext, made: Sequence[StoredImage]) -> bool:
    """Return whether the client was informed; the images are kept either way."""
    try:
        for each in made:
            await ctx.messaging.send(
                "image",
                id=each.id,
                mediaType=each.media_type,
                width=each.width,
                height=each.height,
                size=each.size,
                prompt=each.prompt,
            )
    except ConnectionError:
        return False
    return True


def _wire(image: StoredImage) -> dict[str, Any]:
    return {
        "id": image.id,
        "media_type": image.media_type,
        "width": image.width,
        "height": image.height,
        "size": image.size,
    }
