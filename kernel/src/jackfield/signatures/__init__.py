"""Signed registries: DSSE envelopes with an in-toto statement, verified offline against trusted keys."""
