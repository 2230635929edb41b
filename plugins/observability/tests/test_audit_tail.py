"""Reading the latest lines of the audit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield import ErrorType, fail
from jackfield_observability import audit_file
from jackfield_observability.audit import Audit
from jackfield_observability.audit_file import read_tail
from jackfield_observability.settings import AuditSettings


def test_the_latest_come_first_and_filters_narrow_them_down(
    audited: Callable[..., Any], audited_host: ModuleType
) -> None:
    async def broken(args: dict[str, Any], ctx: Any) -> Any:
        return fail(ErrorType.PERMANENT, "No.")

    talk = audited(audited_host.tool(), audited_host.tool(broken, "broken"))
    for number in range(3):
        talk.call(number=number)
    talk.call("broken", number=3)

    lines, complete = talk.audit.tail(2)
    assert [line["arguments"]["number"] for line in lines] == [3, 2]
    assert not complete
    assert [line["tool"] for line in talk.audit.tail(9, ok=False).lines] == ["broken"]
    assert len(talk.audit.tail(9, tool="echo", ok=True).lines) == 3
    assert talk.audit.tail(9, session="session-1").complete
    assert talk.audit.tail(9, session="another") == ([], True)


def test_rotated_lines_are_found(audited: Callable[..., Any]) -> None:
    talk = audited(max_bytes=4000, backups=3)
    for number in range(12):
        talk.call(number=number)
        talk.audit.drain()
    numbers = [line["arguments"]["number"] for line in talk.audit.tail(8).lines]
    assert numbers == list(range(11, 3, -1))


def test_half_a_line_is_ignored(path: Path) -> None:
    path.write_bytes(b'{"tool":"a"}\n{"tool":"b"\n[1]\n\n{"tool":"c"}\n{"too')
    assert read_tail(path, 0, 9, lambda _: True).lines == [{"tool": "c"}, {"tool": "a"}]


def test_a_pipe_has_no_lines(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert read_tail(pipe, 2, 9, lambda _: True) == ([], True)
    assert read_tail(tmp_path / "missing", 2, 9, lambda _: True) == ([], True)


def test_the_search_for_lines_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"".join(orjson.dumps({"n": n}) + b"\n" for n in range(1000)))
    monkeypatch.setattr(audit_file, "MAX_SCAN_BYTES", 1000)
    lines, complete = read_tail(path, 0, 1000, lambda line: line["n"] > 990)
    assert [line["n"] for line in lines] == list(range(999, 990, -1))
    assert not complete


@given(texts=st.lists(st.text(max_size=60)), block=st.integers(1, 64))
def test_no_cut_between_blocks_loses_or_splits_a_line(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], block: int
) -> None:
    path = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    path.write_bytes(b"".join(orjson.dumps({"text": text}) + b"\n" for text in texts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_file, "BLOCK", block)
        found = read_tail(path, 0, 1000, lambda _: True).lines
    assert [line["text"] for line in found] == texts[::-1]


def test_a_line_can_be_read_as_soon_as_its_call_ends(audited_host: ModuleType, path: Path) -> None:
    audit = Audit(AuditSettings(path))
    talk = audited_host.AuditedHost(observers=[audit])
    talk.call()
    assert len(audit.tail(1).lines) == 1
    talk.run(audit.close())
    talk.close()
