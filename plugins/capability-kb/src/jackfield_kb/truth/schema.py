"""The tables, and what makes a file one of ours."""

from __future__ import annotations

from pathlib import Path

import apsw

from jackfield_kb.errors import LibraryError

VERSION = 1
_APPLICATION = 0x4A464B42  # "JFKB"

_TABLES = """
CREATE TABLE sources (
    uri TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    collection TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sources_by_collection ON sources (collection);

-- A record that changes gets a new number, and numbers are never used again: what an index knows under a
-- number stays true, and "everything above the highest number it knows" is what it lacks.
CREATE TABLE records (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    source TEXT REFERENCES sources (uri),
    digest BLOB NOT NULL,
    type TEXT NOT NULL,
    namespace TEXT NOT NULL,
    owner TEXT,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    tags TEXT NOT NULL,
    url TEXT,
    source_type TEXT NOT NULL,
    last_updated TEXT,
    metadata TEXT NOT NULL
) STRICT;
CREATE INDEX records_by_source ON records (source, id);
CREATE INDEX records_by_kind ON records (namespace, type);

-- The numbers that are no longer there, in the order in which they went.
CREATE TABLE removed (
    step INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL
) STRICT;
"""


def bring_up_to_date(db: apsw.Connection, path: Path) -> None:
    """Make the tables in an empty file; refuse a file of something else or of a later version."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version, application = db.pragma("user_version"), db.pragma("application_id")
        if version == 0 and application == 0 and not db.execute("SELECT 1 FROM sqlite_schema").get:
            db.execute(_TABLES)
            db.pragma("application_id", _APPLICATION)
            db.pragma("user_version", VERSION)
        elif application != _APPLICATION:
            raise LibraryError(f"{path} is not a knowledge base; give the library another folder")
        elif version > VERSION:
            raise LibraryError(
                f"{path} was made by a later version of jackfield-capability-kb; install that version"
            )
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
