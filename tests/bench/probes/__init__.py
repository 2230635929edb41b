"""Programs that measure one property each, `python -m bench.probes.NAME`, and print it as JSON."""
