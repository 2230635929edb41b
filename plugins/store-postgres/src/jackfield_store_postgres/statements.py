"""The SQL of the store. Each operation, or batch of them, is one statement: one round trip and one
transaction.

All statements run at READ COMMITTED and are written for PostgreSQL 15 and later. Times are the server's:
`store_time()` is `clock_timestamp()`, because `now()` stands still during a transaction.
"""

from __future__ import annotations

MAX_SECONDS = 3_000_000_000.0
"""Longer times to live are treated as unlimited, because PostgreSQL's timestamps have a maximum."""


def to_text(key: str) -> str:
    """Return a key in a form that PostgreSQL can store, without null characters and in the same order."""
    if "\x00" in key or "\x01" in key:
        # Escaped like this, keys sort as before, and a prefix of a key stays a prefix.
        return key.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return key


def from_text(text: str) -> str:
    """Return the key that `to_text` was given."""
    if "\x01" in text:
        return text.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")
    return text


def seconds(ttl: float | None) -> float | None:
    """Return a time to live for `expiry()`; None if the row does not expire."""
    return None if ttl is None or ttl > MAX_SECONDS else float(ttl)


# `synchronous_commit` for this transaction only: an unflushed commit for writes that need not be durable.
def _durability(parameter: str) -> str:
    return f"({parameter}::boolean OR set_config('synchronous_commit', 'off', true) IS NOT NULL)"


# --- values and counters ---------------------------------------------------------------------------------

GET = "SELECT value FROM kept WHERE key = $1 AND expires > store_time()"

TAKE = "DELETE FROM kept WHERE key = $1 RETURNING value, expires > store_time() AS current"

DELETE = "DELETE FROM kept WHERE key = $1 RETURNING expires > store_time() AS current"

KEYS = "SELECT key FROM kept WHERE key >= $1 AND key < $2 AND expires > store_time() ORDER BY key"

# `since` is the time of this addition in the row that was proposed for insertion.
ADD = f"""
    INSERT INTO counters AS c (key, count, since, expires)
    SELECT $1, $2, store_time(), expiry($3) WHERE {_durability("false")}
    ON CONFLICT (key) DO UPDATE SET
        count = CASE WHEN c.expires > excluded.since THEN c.count + excluded.count ELSE excluded.count END,
        since = CASE WHEN c.expires > excluded.since THEN c.since ELSE excluded.since END,
        expires = CASE WHEN c.expires > excluded.since THEN c.expires ELSE excluded.expires END
    RETURNING count
"""

# --- claims ----------------------------------------------------------------------------------------------

_CURRENT = "(c.expires > store_time() OR c.note IS NOT NULL)"
"""Current claims: not expired, or with a note, which a person has to resolve."""

# A holder acts only within half of `grace` after its lease was renewed (see HOLDS), so once `grace` has
# passed, no holder is still doing anything that began with a valid check. The holder's session lock only
# extends that time: a host that is connected but slow keeps its claims for the whole lease. A missing lock
# proves nothing, because perhaps only the connection broke, not the host.
_ALIVE = """
    (o.renewed + o.grace > store_time()
     OR o.renewed + o.lease > store_time() AND NOT pg_try_advisory_xact_lock_shared(o.session))
"""

_STATE = f"""
    c.fingerprint, c.result, c.owner, c.attempt,
    CASE WHEN c.result IS NOT NULL OR c.owner = $1 THEN true ELSE coalesce({_ALIVE}, false) END AS alive
"""
"""The state of a claim; `$1` is the asking owner, which knows that it is alive."""

# $2 key
CLAIM_STATE = f"""
    SELECT {_STATE} FROM claims c LEFT JOIN owners o ON o.id = c.owner WHERE c.key = $2 AND {_CURRENT}
"""  # noqa: S608

# Makes the claims of a batch that do not exist, and reads the others without a write. Gives no row for a
# claim that another caller made after this statement took its snapshot: its row stops the insertion, but is
# not visible yet. The same goes for all but one claim of the same key in the batch. The caller asks again.
#
# $1 owner, $2 to $7 keys in their order, attempts, fingerprints, ttls, notes and results, $8 durable
MAKE_CLAIMS = f"""
    WITH wanted AS MATERIALIZED (
        SELECT * FROM unnest($2::text[], $3::bigint[], $4::bytea[], $5::float8[], $6::bytea[], $7::bytea[])
            AS w (key, attempt, fingerprint, ttl, note, result)
    ),
    known AS MATERIALIZED (
        SELECT w.attempt AS wanted, w.key, {_STATE}
        FROM wanted w JOIN claims c ON c.key = w.key LEFT JOIN owners o ON o.id = c.owner
        WHERE {_CURRENT}
    ),
    made AS (
        INSERT INTO claims AS c (key, owner, attempt, fingerprint, expires, note, result, fence)
        SELECT DISTINCT ON (w.key COLLATE "C")
            w.key, $1, w.attempt, w.fingerprint, expiry(w.ttl), w.note, w.result, nextval('fences')
        FROM wanted w
        WHERE NOT EXISTS (SELECT FROM known k WHERE k.key = w.key) AND {_durability("$8")}
        ORDER BY w.key COLLATE "C", w.attempt
        ON CONFLICT (key) DO UPDATE SET
            owner = excluded.owner, attempt = excluded.attempt, fingerprint = excluded.fingerprint,
            expires = excluded.expires, note = excluded.note, result = excluded.result,
            fence = excluded.fence
        WHERE NOT {_CURRENT}
        RETURNING c.attempt, c.fence
    )
    SELECT attempt AS wanted, true AS made, fence, true AS is_own,
        NULL::bytea AS fingerprint, NULL::bytea AS result, true AS alive
    FROM made
    UNION ALL
    SELECT wanted, false, 0, owner = $1 AND attempt = wanted, fingerprint, result, alive FROM known
"""  # noqa: S608

# Commits a change to rows that an earlier attempt has written, so that the earlier commit is durable too
# once this one is: an interrupted commit may not have reached the standby yet.
CONFIRM_CLAIMS = """
    UPDATE claims SET attempt = attempt
    WHERE key = ANY ($2::text[]) AND owner = $1 AND attempt = ANY ($3::bigint[])
    RETURNING attempt AS wanted, true AS made, fence
"""

# $1 keys, $2 fences, $3 results, $4 numbers
CONFIRM_RESULTS = """
    UPDATE claims c SET attempt = attempt
    FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bigint[]) AS w (key, fence, result, number)
    WHERE c.key = w.key AND c.fence = w.fence AND c.result = w.result
    RETURNING w.number
"""

# Whether the claim is held, and whether the lease is so fresh that nobody can take it over for a while.
HOLDS = f"""
    SELECT coalesce(o.renewed + o.grace / 2 > store_time(), false) AS fresh
    FROM claims c LEFT JOIN owners o ON o.id = c.owner
    WHERE c.key = $1 AND c.fence = $2 AND c.owner = $3 AND c.result IS NULL AND {_CURRENT}
"""  # noqa: S608

# $1 keys in their order, $2 fences, $3 results, $4 numbers, $5 ttls (none: keep the claim's; below 0: no
# expiry), $6 durable. An expiry that stays the same leaves its index alone.
COMPLETE = f"""
    UPDATE claims c SET result = w.result, note = NULL,
        expires = CASE WHEN w.ttl IS NULL THEN c.expires WHEN w.ttl < 0 THEN 'infinity'
            ELSE expiry(w.ttl) END
    FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bigint[], $5::float8[])
        AS w (key, fence, result, number, ttl)
    WHERE c.key = w.key AND c.fence = w.fence AND c.result IS NULL AND {_CURRENT}
        AND {_durability("$6")}
    RETURNING w.number
"""  # noqa: S608

_HELD = "c.key = $1 AND c.fence = $2 AND c.result IS NULL"

RELEASE = f"DELETE FROM claims c WHERE {_HELD} RETURNING c.fence"  # noqa: S608

# The new fence keeps the former holder out.
ABANDON = f"""
    UPDATE claims c SET owner = '', fence = nextval('fences') WHERE {_HELD} RETURNING c.fence
"""  # noqa: S608

# Locks the claim, then its dead owner's row. A row that changed while the statement waited for its lock is
# read again: an owner that renews its lease at this moment is alive, and its claim stays where it is.
RECLAIM = f"""
    WITH doubtful AS MATERIALIZED (
        SELECT c.owner, c.fence FROM claims c
        WHERE c.key = $1 AND c.owner <> $2 AND c.result IS NULL AND {_CURRENT} FOR UPDATE
    ),
    dead AS MATERIALIZED (
        SELECT o.id FROM owners o WHERE o.id = (SELECT owner FROM doubtful) AND NOT {_ALIVE} FOR UPDATE
    )
    UPDATE claims c SET owner = $2, attempt = $3, fence = nextval('fences')
    FROM doubtful d
    WHERE c.key = $1 AND c.fence = d.fence
        AND (EXISTS (SELECT FROM dead) OR NOT EXISTS (SELECT FROM owners o WHERE o.id = d.owner))
    RETURNING c.fence
"""  # noqa: S608

IN_DOUBT = f"""
    SELECT c.key, c.note FROM claims c LEFT JOIN owners o ON o.id = c.owner
    WHERE c.note IS NOT NULL AND c.result IS NULL AND c.key >= $1 AND c.key < $2 AND c.owner <> $3
        AND NOT coalesce({_ALIVE}, false)
    ORDER BY c.key
"""  # noqa: S608

# --- claim owners ----------------------------------------------------------------------------------------

LOCK_SESSION = "SELECT pg_advisory_lock($1)"

REGISTER_OWNER = """
    INSERT INTO owners (id, session, lease, grace, host, renewed)
    VALUES ($1, $2, make_interval(secs => $3), make_interval(secs => $4), $5, store_time())
"""

# Never inserts: an owner whose row is gone was declared dead, and its claims may have new owners.
RENEW_OWNER = "UPDATE owners SET session = $2, renewed = store_time() WHERE id = $1 RETURNING id"

RESIGN_OWNER = "DELETE FROM owners WHERE id = $1"

READ_TIME = "SELECT extract(epoch FROM store_time())::float8"

# --- sessions --------------------------------------------------------------------------------------------

OWN_PROCESS = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"

# A process whose state the server does not tell counts as busy.
BUSY_PROCESSES = """
    SELECT pid, backend_start FROM pg_stat_activity
    WHERE pid = ANY($1::int[]) AND state IS DISTINCT FROM 'idle'
"""

# --- streams ---------------------------------------------------------------------------------------------

# Appends and puts of one batch. The row of a stream gives out its ids and stays locked until the commit, so
# ids have no gaps and become visible in their order. The caller passes streams and keys sorted, so that two
# batches never wait for each other.
#
# $1 streams, $2 their numbers of entries, $3 to $6 the entries (stream, how many follow it in the batch,
# value, ttl), $7 to $9 the puts (key, value, ttl), $10 durable
WRITE_BATCH = f"""
    WITH heads AS (
        INSERT INTO streams AS s (name, last)
        SELECT * FROM unnest($1::text[], $2::bigint[])
        ON CONFLICT (name) DO UPDATE SET last = s.last + excluded.last
        RETURNING s.name, s.number, s.last
    ),
    appended AS (
        INSERT INTO entries (stream, id, value, expires)
        SELECT h.number, h.last - e.following, e.value, expiry(e.ttl)
        FROM unnest($3::text[], $4::bigint[], $5::bytea[], $6::float8[]) AS e (stream, following, value, ttl)
        JOIN heads h ON h.name = e.stream
    ),
    stored AS (
        INSERT INTO kept AS k (key, value, expires)
        SELECT p.key, p.value, expiry(p.ttl)
        FROM unnest($7::text[], $8::bytea[], $9::float8[]) AS p (key, value, ttl)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires
    )
    SELECT d.chosen, h.name, h.last FROM (SELECT {_durability("$10")} AS chosen) d LEFT JOIN heads h ON true
"""  # noqa: S608

READ = """
    SELECT e.id, e.value FROM entries e
    WHERE e.stream = (SELECT number FROM streams WHERE name = $1) AND e.id > $2 AND e.expires > store_time()
    ORDER BY e.id LIMIT $3
"""

STREAMS = """
    SELECT s.name FROM streams s WHERE s.name >= $1 AND s.name < $2
        AND EXISTS (SELECT FROM entries e WHERE e.stream = s.number AND e.expires > store_time())
    ORDER BY s.name
"""

CLEAR = """
    WITH gone AS (
        DELETE FROM entries WHERE stream = (SELECT number FROM streams WHERE name = $1)
        RETURNING expires > store_time() AS current
    )
    SELECT count(*) FILTER (WHERE current) FROM gone
"""

# --- expiry ----------------------------------------------------------------------------------------------


def _prune(table: str, condition: str = "") -> str:
    # The subquery for the time lets the index be used; rows that another session has locked are left for
    # later.
    return f"""
        DELETE FROM {table} WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM {table} WHERE expires <= (SELECT store_time()) {condition}
            LIMIT $1 FOR UPDATE SKIP LOCKED
        )) AND {_durability("false")}
    """  # noqa: S608 - names from this module


PRUNE = (
    _prune("kept"),
    _prune("counters"),
    # A claim with a note stays until a person resolves it.
    _prune("claims", "AND note IS NULL"),
    _prune("entries"),
)

# Long dead: their claims are in doubt with or without the row.
PRUNE_OWNERS = "DELETE FROM owners WHERE renewed + lease + interval '1 day' < store_time()"

# --- notifications ---------------------------------------------------------------------------------------

NOTIFY = f"""
    SELECT pg_notify($1, topic) FROM unnest($2::text[]) AS topic WHERE {_durability("false")}
"""  # noqa: S608
