"""Benchmarks: `nox -s bench`; docs/benchmarks.md explains them."""
