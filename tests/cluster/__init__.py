"""A cluster on this machine: PostgreSQL with a synchronous standby, several hosts, and nginx before them.

    nox -s cluster -- --help

docs/scaling.md describes what the cluster is for and what it has measured.
"""
