"""The settings of the knowledge base and their faults."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import SettingsError, parse_settings
from jackfield_kb import embedders
from jackfield_kb.errors import LibraryError
from jackfield_kb.settings import PLACE, KnowledgeSettings, open_library


def read(**table: Any) -> KnowledgeSettings:
    return parse_settings(KnowledgeSettings, table, PLACE)


READERS = "expected one of 'everybody', 'users', or a list of strings, got"


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"foldr": "x"}, "[capabilities.kb] foldr: unknown setting; did you mean 'folder'?"),
        ({"folder": ""}, "[capabilities.kb] folder: expected a path, got ''"),
        ({"folder": 3}, "[capabilities.kb] folder: expected a path, got 3"),
        (
            {"embeddings": "remote"},
            "[capabilities.kb] embeddings: expected one of 'local', 'openai', 'off', got 'remote'",
        ),
        (
            {"embeddings": False},
            "[capabilities.kb] embeddings: expected one of 'local', 'openai', 'off', got false",
        ),
        (
            {"model": "x", "api_key_env": "KEY"},
            '[capabilities.kb] model: only used with embeddings = "openai"\n'
            '[capabilities.kb] api_key_env: only used with embeddings = "openai"',
        ),
        (
            {"embeddings": "openai", "base_url": "localhost:80"},
            "[capabilities.kb] base_url: expected a URL that begins with http:// or https://, got "
            "'localhost:80'",
        ),
        (
            {"records": "mysql://ann:s3cret@db/kb"},
            "[capabilities.kb] records: expected a URL that begins with postgresql://",
        ),
        (
            {"records": "postgresql://db/kb", "records_env": "KB_URL"},
            "[capabilities.kb] records_env: records is set as well; keep one of them",
        ),
        (
            {"index": "postgres"},
            "[capabilities.kb] index: 'postgres' needs records in PostgreSQL; set records or records_env",
        ),
        ({"timeout": 0}, "[capabilities.kb] timeout: expected a number of seconds above 0, got 0"),
        ({"patience": True}, "[capabilities.kb] patience: expected a number of seconds above 0, got true"),
        ({"access": "everybody"}, "[capabilities.kb] access: expected a table, got 'everybody'"),
        (
            {"access": {"personal": "everybody"}},
            "[capabilities.kb.access] personal: access is set for studio and public; personal records are "
            "visible to their owner only",
        ),
        (
            {"access": {"private": "everybody"}},
            "[capabilities.kb.access] private: expected 'studio' or 'public', got 'private'",
        ),
        ({"access": {"studio": "nobody"}}, f"[capabilities.kb.access] studio: {READERS} 'nobody'"),
        (
            {"access": {"studio": ["ann", ""]}},
            "[capabilities.kb.access] studio[1]: expected a non-empty string, got ''",
        ),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(table: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(**table)
    assert str(raised.value) == fault


def test_a_missing_key_is_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OUR_KEY", raising=False)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        read(embeddings="openai").embedder()
    with pytest.raises(SettingsError, match="OUR_KEY"):
        read(embeddings="openai", api_key_env="OUR_KEY").embedder()
    local = read(embeddings="openai", base_url="http://127.0.0.1:1/v1")
    assert local.embedder() is not None, "a server of one's own may ask for no key"


def test_a_model_that_is_not_installed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "missing", lambda: ["onnxruntime"])
    assert read().embedder() is None
    with pytest.raises(SettingsError, match=r"onnxruntime.*install"):
        read(embeddings="local").embedder()


def test_access_settings_determine_visibility() -> None:
    settings = read(access={"studio": ["ann"], "public": "users"})
    assert settings.access_of("ann").shared == {"studio", "public"}
    assert settings.access_of("ben").shared == {"public"}
    assert settings.access_of(None).shared == frozenset()
    assert read().access_of(None).shared == {"studio", "public"}


def test_the_database_can_be_named_by_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_URL", "postgresql://ann:s3cret@db/kb")
    assert read(records_env="KB_URL").database_url() == "postgresql://ann:s3cret@db/kb"
    assert read().database_url() is None
    monkeypatch.setenv("KB_URL", "mysql://ann:s3cret@db/kb")
    with pytest.raises(SettingsError, match="KB_URL does not begin with postgresql://") as raised:
        read(records_env="KB_URL").database_url()
    assert "s3cret" not in str(raised.value)
    monkeypatch.delenv("KB_URL")
    with pytest.raises(SettingsError, match="KB_URL is not set"):
        read(records_env="KB_URL").database_url()


@pytest.mark.parametrize("missing", ["asyncpg", "jackfield_postgres"])
def test_a_missing_driver_is_reported(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(
        "jackfield_kb.settings.find_spec", lambda name: None if name == missing else find_spec(name)
    )
    with pytest.raises(SettingsError, match=rf"needs {missing}; install jackfield-capability-kb\[postgres\]"):
        open_library(read(records="postgresql://127.0.0.1:1/kb", embeddings="off"))


def test_a_library_in_postgres_opens_without_a_connection(tmp_path: Path) -> None:
    settings = read(records="postgresql://127.0.0.1:1/kb", embeddings="off", folder=str(tmp_path / "kb"))
    library = open_library(settings)
    with pytest.raises(LibraryError, match=r"postgresql://127.0.0.1:1/kb cannot be used"):
        list(library)
    library.close()


def test_a_tilde_in_a_path_is_expanded() -> None:
    assert read(folder="~/kb").folder == Path.home() / "kb"


def test_listing_the_offers_imports_nothing_heavy() -> None:
    code = (
        "import sys, jackfield_kb; jackfield_kb.jackfield_capabilities(); jackfield_kb.jackfield_commands(); "
        "print([name for name in ('numpy', 'tantivy', 'apsw', 'onnxruntime') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_numpy_is_imported_with_the_first_use_of_the_vectors(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from jackfield_kb.library import Access\n"
        "from jackfield_kb.settings import KnowledgeSettings, open_library\n"
        f"library = open_library(KnowledgeSettings(Path({str(tmp_path / 'kb')!r}), 'local'))\n"
        "opened = 'numpy' in sys.modules\n"
        "library.search('kiln', access=Access.everything())\n"
        "searched = 'numpy' in sys.modules\n"
        "library.close()\n"
        "print(opened, searched)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False True\n"


def test_full_text_search_does_not_need_numpy(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "from pathlib import Path\n"
        "from jackfield_capability_types.knowledge import Record\n"
        "from jackfield_kb.settings import KnowledgeSettings, open_library\n"
        "from jackfield_kb.library import Access\n"
        f"library = open_library(KnowledgeSettings(Path({str(tmp_path / 'kb')!r}), 'off'))\n"
        "library.write([(None, [Record('doc:a', 'Kiln', 'fired on Mondays')])]); library.refresh()\n"
        "print([e.record.id for e in library.search('kiln', access=Access.everything())])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['doc:a']\n"
