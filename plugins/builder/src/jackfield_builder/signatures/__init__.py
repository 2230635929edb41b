"""Signing a registry: keys, the bill of materials, and the envelope that holds the signatures."""
