"""All or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


@contextmanager
def writing(db: apsw.Connection) -> Iterator[None]:
    """Write alone, and commit, or leave no trace."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # Some errors, a full disk among them, have rolled back already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
