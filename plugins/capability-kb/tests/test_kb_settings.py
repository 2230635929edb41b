"""The settings of the knowledge base and their faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import SettingsError, parse_settings
from jackfield_kb import embedders
from jackfield_kb.settings import PLACE, KnowledgeSettings


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


def test_a_tilde_in_a_path_is_expanded() -> None:
    assert read(folder="~/kb").folder == Path.home() / "kb"


def test_listing_the_offers_imports_nothing_heavy() -> None:
    code = (
        "import sys, jackfield_kb; jackfield_kb.jackfield_capabilities(); jackfield_kb.jackfield_commands(); "
        "print([name for name in ('numpy', 'tantivy', 'apsw', 'onnxruntime') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


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
