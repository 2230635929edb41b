"""What runs for parcel_book."""

from __future__ import annotations

from jackfield import ErrorType, ToolError, fail, ok


async def execute(args, ctx):
    if args["to"] == "nowhere":
        return fail(ErrorType.PERMANENT, "There is no such place.", suggestion="Ask for the address.")
    if args["to"] == "the moon":
        raise ToolError(ErrorType.CONFLICT, "No parcel goes there.", details={"to": args["to"]})
    price = await ctx.call_tool("parcel_price", {"kilograms": args["kilograms"]})
    await ctx.messaging.send("parcel_booked", to=args["to"])
    return ok({"booked": True, "cents": price.data["cents"]})
