"""Measurements: `nox -s bench`; what they mean stands in docs/benchmarks.md."""
