"""The development loop: watches the sources of tools, rebuilds the registry and reloads it."""
