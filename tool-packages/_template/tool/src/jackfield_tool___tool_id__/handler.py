from jackfield import ok


async def execute(args, ctx):
    return ok({"words": len(args["text"].split())})
