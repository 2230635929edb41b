"""The capability `shop`: customers, products and orders as JSON documents in one SQLite file."""

import json
import sqlite3
from contextlib import closing, contextmanager

from jackfield import ErrorType, ToolError


class Shop:
    """Opens the file for each call, so that any thread of any host can use it."""

    def __init__(self, path):
        self._path = path

    @contextmanager
    def change(self):
        """Yield the documents in one transaction; an error undoes everything."""
        with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as database:
            database.execute("create table if not exists documents (id primary key, kind, body)")
            database.execute("begin immediate")
            yield Documents(database)
            database.execute("commit")

    def get(self, kind, key):
        with self.change() as data:
            return data.get(kind, key)

    def all(self, kind):
        with self.change() as data:
            return data.all(kind)


class Documents:
    """The documents inside a transaction."""

    def __init__(self, database):
        self._database = database

    def get(self, kind, key):
        rows = self._database.execute("select body from documents where kind = ? and id = ?", (kind, key))
        if row := rows.fetchone():
            return json.loads(row[0])
        raise ToolError(ErrorType.PERMANENT, f"There is no {kind} {key}.", suggestion="Ask the user for it.")

    def all(self, kind):
        rows = self._database.execute("select body from documents where kind = ? order by id", (kind,))
        return [json.loads(body) for (body,) in rows]

    def put(self, kind, document):
        row = (document["id"], kind, json.dumps(document, sort_keys=True))
        self._database.execute("insert or replace into documents values (?, ?, ?)", row)
        return document
