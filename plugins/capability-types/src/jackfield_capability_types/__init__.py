"""What tools ask of the world behind them: protocols that any plugin may fulfil.

A tool names a capability under `requires` and finds it in its context; it never learns who provides it.
Whoever provides one passes the conformance suite of the test kit. A capability that cannot do what it was
asked raises `ToolError` with a type and a sentence for the model, so handlers need not translate.
"""
