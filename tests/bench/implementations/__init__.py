"""One job in many implementations: a call to `kb_search` with JSON arguments and a JSON result.

Every implementation is its own program, `python -m bench.implementations.NAME`, that prints the cost of a
call. All get the same arguments and do the same work. They differ in what happens around the call; the
docstring of each module states what is compared and what is left out.
"""
