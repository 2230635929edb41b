"""Loads files into a library.

`scan` finds files, `formats` reads each format into drafts, `drafts` turns a draft into a record, `batch`
writes records in batches, and `load` runs all of them.
"""
