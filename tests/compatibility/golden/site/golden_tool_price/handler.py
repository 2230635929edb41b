"""What runs for parcel_price."""

from __future__ import annotations

from jackfield import Intent, ok


async def execute(args, ctx):
    await ctx.progress("Looking into the tariff.", fraction=0.5)
    ctx.audit("priced", kilograms=args["kilograms"])
    cents = ctx.tariff.price(args["kilograms"]) * (2 if args["speed"] == "fast" else 1)
    data = {"cents": cents, "speed": args["speed"], "mode": ctx.session.mode, "turn": ctx.session.turn}
    return ok(data, Intent("PARCEL_MARK", {"number": args["kilograms"]}))
