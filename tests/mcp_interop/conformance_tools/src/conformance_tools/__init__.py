"""The tools that the conformance suite of MCP expects on a server under test."""
