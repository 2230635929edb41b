"""Reads OpenAPI documents and turns their operations into tools."""
