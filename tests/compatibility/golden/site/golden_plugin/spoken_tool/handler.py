from __future__ import annotations

from jackfield import ok


def execute(args, ctx):
    return ok({"motto": "Everywhere by noon."})
