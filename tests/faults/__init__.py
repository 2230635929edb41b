"""The fault campaign: real hosts are killed and paused in the middle of calls, and every answer is checked.

    nox -s faults -- --help

What the campaign promises to find is described in docs/reliability.md.
"""
