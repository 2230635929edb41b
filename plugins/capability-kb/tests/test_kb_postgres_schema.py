"""The tables in PostgreSQL: creation, versions, row-level security, and messages without secrets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jackfield_capability_types.knowledge import Filters, Record
from jackfield_kb.access import Access
from jackfield_kb.errors import LibraryError
from jackfield_kb.postgres.database import SessionPool
from jackfield_kb.postgres.records import EVERYTHING, PostgresRecords
from jackfield_kb.postgres.schema import Connection
from kb_fixtures import WordModel, ids, notes
from kb_postgres import Databases, shared

ANN, BEN = Access.of("ann"), Access.of("ben")
PERSONAL = [
    Record(
        f"doc:{owner.replace(' ', '')}", "Salary", f"What {owner} earns.", namespace="personal", owner=owner
    )
    for owner in ("ann", "ben", "Ann", "*", "ann,ben", '{"ben"}', "ann' OR '1'='1", "scope:studio")
]


def opened(url: str) -> PostgresRecords:
    return PostgresRecords(SessionPool(url))


async def forgotten_condition(connection: Connection) -> list[str]:
    """The ids of all records, as by a query whose author forgot the condition."""
    return [row["id"] for row in await connection.fetch("SELECT id FROM records ORDER BY id")]


@pytest.fixture(params=["superuser", "owner of the tables"])
def role_url(request: pytest.FixtureRequest, databases: Databases, url: str) -> str:
    """The address of a database with personal records, as a superuser or as an ordinary user."""
    name = url.rpartition("/")[2]
    if request.param != "superuser":
        databases.server.execute(
            "DO $$ BEGIN CREATE ROLE plain LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; "
            "GRANT USAGE, CREATE ON SCHEMA jackfield_kb TO plain; "
            "DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables "
            "WHERE schemaname = 'jackfield_kb' LOOP "
            "EXECUTE format('ALTER TABLE jackfield_kb.%I OWNER TO plain', t); END LOOP; END $$",
            database=name,
        )
        url = databases.server.uri(name, user="plain")
    records = opened(url)
    records.write([(None, [*PERSONAL, *notes(3)])], [])
    records.close()
    return url


def test_row_level_security_holds_if_a_query_forgets_its_condition(role_url: str) -> None:
    records = opened(role_url)
    shared_ids = ["doc:0", "doc:1", "doc:2"]
    for record in PERSONAL:
        seen = records.database.run(forgotten_condition, Access.of(record.owner))
        assert seen == sorted([*shared_ids, record.id])
    assert records.database.run(forgotten_condition, Access.of(None)) == shared_ids
    assert records.database.run(forgotten_condition, Access.of("ben", [])) == ["doc:ben"]
    assert records.database.run(forgotten_condition, Access()) == []
    assert len(records.database.run(forgotten_condition, EVERYTHING)) == 3 + len(PERSONAL)
    assert records.database.run(forgotten_condition, ANN) == ["doc:0", "doc:1", "doc:2", "doc:ann"]
    records.close()


def test_a_session_without_access_sees_no_record(role_url: str) -> None:
    if "plain" not in role_url:
        pytest.skip("row-level security does not apply to a superuser that takes no other role")
    records = opened(role_url)
    records.database.run(forgotten_condition, EVERYTHING)
    assert records.database.query(forgotten_condition) == [], "also after a transaction that saw everything"
    records.close()


def test_a_user_cannot_write(role_url: str) -> None:
    records = opened(role_url)

    async def steal(connection: Connection) -> None:
        await connection.execute(
            "UPDATE records SET owner = 'ben', scope = 'personal/ben' WHERE id = 'doc:ann'"
        )

    if "plain" in role_url:
        records.database.run(steal, BEN)
    else:
        with pytest.raises(LibraryError, match="permission denied"):
            records.database.run(steal, BEN)
    assert records.by_ids(["doc:ann"], BEN) == []
    assert [record.owner for record in records.by_ids(["doc:ann"], ANN)] == ["ann"]
    records.close()


@pytest.mark.parametrize("local", [True, False], ids=["indexes on the host", "search in PostgreSQL"])
def test_no_manipulated_filter_reaches_records_of_others(url: str, tmp_path: Path, local: bool) -> None:
    library = shared(url, tmp_path / "host" if local else None, WordModel())
    library.write([(None, [*PERSONAL, *notes(3)])])
    library.refresh()
    attacks = ["' OR '1'='1", "scope:personal", "scope:personal/ann", "personal/ann", "*", '"}', "doc\0"]
    for attack in attacks:
        for filters in (
            Filters(type=attack),
            Filters(tags=(attack,)),
            Filters(type="doc", tags=(attack, "x")),
        ):
            assert library.search("salary earns", access=BEN, filters=filters, limit=50) == []
        for namespace in (attack, "personal", None):
            found = library.search("salary ann earns", access=BEN, namespace=namespace, limit=50)
            assert {each.record.owner for each in found} <= {"ben", None}
        assert set(ids(library.search(attack, access=BEN, limit=50))) <= {
            "doc:ben",
            "doc:0",
            "doc:1",
            "doc:2",
        }
    asked = [record.id for record in PERSONAL]
    assert [record.id for record in library.visible([*asked, *attacks], BEN)] == ["doc:ben"]
    assert library.visible(asked, Access.of(None)) == []
    library.close()


def test_tables_are_created_once_by_many_hosts(databases: Databases) -> None:
    url = databases.server.create_database("created_at_once")
    hosts = [opened(url) for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        libraries = set(threads.map(lambda host: host.head().library, hosts))
    assert len(libraries) == 1
    for host in hosts:
        host.close()


def test_tables_of_a_later_version_are_refused(url: str, databases: Databases) -> None:
    name = url.rpartition("/")[2]
    databases.server.execute("UPDATE jackfield_kb.schema_version SET version = 99", database=name)
    records = opened(url)
    try:
        with pytest.raises(LibraryError, match="created by a later version"):
            records.position()
    finally:
        records.close()
        databases.server.execute("UPDATE jackfield_kb.schema_version SET version = 1", database=name)


def test_messages_do_not_contain_the_password() -> None:
    for url in (
        "postgresql://ann:s3cret@127.0.0.1:1/kb",
        "postgresql://ann:s3cret@127.0.0.1:99999999/kb",
        "postgresql://ann:s3cret@[::/kb",
    ):
        records = opened(url)
        with pytest.raises(LibraryError) as raised:
            records.position()
        assert "s3cret" not in str(raised.value)
        records.close()


def test_many_vectors_are_indexed_and_narrow_filters_still_find_everything(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_kb.postgres.embeddings._WORTH_IT", 500)
    url = databases.server.create_database("many_vectors")
    library = shared(url, None, WordModel(dimensions=16))
    rare = [Record(f"doc:rare{n}", "Kestrel", f"kestrel number{n}", tags=("rare",)) for n in range(12)]
    library.write([(None, [*notes(1_500), *rare])])
    library.refresh()

    async def plan(connection: Connection) -> str:
        statement = (
            "EXPLAIN SELECT number FROM vectors WHERE model = 'words' "
            f"ORDER BY vector::halfvec(16) <=> '[{','.join('1' * 16)}]' LIMIT 10"
        )
        await connection.execute("SET enable_seqscan = off")
        return "\n".join(row[0] for row in await connection.fetch(statement))

    found = library.search("subject7 nothing", access=EVERYTHING, filters=Filters(tags=("rare",)), limit=20)
    assert len(found) <= 12
    found = library.search("kestrel", access=EVERYTHING, filters=Filters(tags=("rare",)), limit=20)
    assert {each.record.id for each in found} == {record.id for record in rare}
    records = opened(url)
    assert "vectors_of_" in records.database.query(plan)
    records.close()
    library.close()


def test_a_frequent_word_selects_no_candidates_next_to_a_rare_one(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_kb.postgres.candidates.MOST_MATCHES", 10)
    library = shared(url)
    library.write([(None, notes(50))])
    library.refresh()
    # Every record has the word "note".
    assert ids(library.search("note subject7", access=EVERYTHING)) == ["doc:7"]
    assert len(library.search("note", access=EVERYTHING, limit=20)) == 20, "the rarest word is always used"
    library.close()
