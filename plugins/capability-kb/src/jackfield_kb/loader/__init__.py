"""Loading: files become records.

`walk` finds files, `formats` reads one kind each into drafts, `drafts` turns what a document says of itself
into a record, `load` brings the library up to date with what was found, `exchange` writes records out again.
"""
