"""What a deployment may say, and what it is told when that cannot be used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import SettingsError
from jackfield_kb import embedding
from jackfield_kb.settings import KnowledgeSettings


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"foldr": "x"}, "did you mean 'folder'"),
        ({"folder": ""}, "folder is a path"),
        ({"folder": 3}, "folder is a path"),
        ({"embeddings": "remote"}, "embeddings is"),
        ({"embeddings": False}, "embeddings is"),
        ({"model": "x"}, 'only used with embeddings = "openai"'),
        ({"embeddings": "openai", "base_url": "localhost:80"}, "base_url is an address"),
        ({"timeout": 0}, "timeout is a number"),
        ({"patience": True}, "patience is a number"),
        ({"access": "everybody"}, "access is a table"),
        ({"access": {"personal": "everybody"}}, "personal records are their owner's"),
        ({"access": {"studio": "nobody"}}, "access.studio is"),
        ({"access": {"studio": [""]}}, "access.studio is"),
    ],
)
def test_what_makes_no_sense_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        KnowledgeSettings.read(table)


def test_a_key_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OUR_KEY", raising=False)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        KnowledgeSettings.read({"embeddings": "openai"}).embedder()
    with pytest.raises(SettingsError, match="OUR_KEY"):
        KnowledgeSettings.read({"embeddings": "openai", "api_key_env": "OUR_KEY"}).embedder()
    settings = KnowledgeSettings.read({"embeddings": "openai", "base_url": "http://127.0.0.1:1/v1"})
    assert settings.embedder() is not None, "a server of one's own may ask for no key"


def test_a_model_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "missing", lambda: ["onnxruntime"])
    assert KnowledgeSettings.read({}).embedder() is None
    with pytest.raises(SettingsError, match=r"onnxruntime.*install"):
        KnowledgeSettings.read({"embeddings": "local"}).embedder()


def test_who_sees_what() -> None:
    settings = KnowledgeSettings.read({"access": {"studio": ["ann"], "public": "users"}})
    assert settings.access_of("ann").shared == {"studio", "public"}
    assert settings.access_of("ben").shared == {"public"}
    assert settings.access_of(None).shared == frozenset()
    assert KnowledgeSettings.read({}).access_of(None).shared == {"studio", "public"}


def test_the_home_folder_is_understood() -> None:
    assert KnowledgeSettings.read({"folder": "~/kb"}).folder == Path.home() / "kb"


def test_asking_what_is_offered_imports_nothing_heavy() -> None:
    code = (
        "import sys, jackfield_kb; jackfield_kb.jackfield_capabilities(); jackfield_kb.jackfield_commands(); "
        "print([name for name in ('numpy', 'tantivy', 'apsw', 'onnxruntime') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_words_alone_need_no_numpy(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "from pathlib import Path\n"
        "from jackfield_capability_types.knowledge import Record\n"
        "from jackfield_kb.settings import open_library\n"
        "from jackfield_kb.library import Access\n"
        f"library = open_library({{'folder': {str(tmp_path / 'kb')!r}, 'embeddings': 'off'}})\n"
        "library.write([(None, [Record('doc:a', 'Kiln', 'fired on Mondays')])]); library.refresh()\n"
        "print([e.record.id for e in library.search('kiln', access=Access.everything())])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['doc:a']\n"
