"""The handler that all tools of MCP servers share; the build supplies their schemas and guides."""
