"""All or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import apsw

_AT_ONCE = nullcontext()


@contextmanager
def writing(db: apsw.Connection, turn: AbstractContextManager[None] = _AT_ONCE) -> Iterator[None]:
    """Write alone, when it is one's turn, and commit, or leave no trace."""
    with turn:
        db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # Some errors, a full disk among them, have rolled back already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
