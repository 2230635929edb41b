"""Protocols of the capabilities that tools use and plugins provide.

A tool names a capability under `requires` and gets it from its context, without knowing the provider. A
provider passes the conformance suite of the test kit. A capability that fails raises `ToolError` with a type
and a message for the model, so handlers need not translate it.
"""
