"""One job done by many: a call of `kb_search`, its arguments a JSON text, its result a JSON text.

Every contestant is a program of its own, `python -m bench.contestants.NAME`, that prints what a call costs.
All get the same arguments and have the same work to do behind them. What they do on the way differs, and each
module says in its first lines what is compared and what is left out.
"""
