"""Meaning: a vector for every passage, searched by a quick look at all and an exact look at the best."""
