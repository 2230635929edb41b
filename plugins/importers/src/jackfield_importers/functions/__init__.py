"""Imports the tools of a Python module: FastMCP servers and LangChain tools."""
