"""Several processes on one folder, and killed processes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kb_fixtures import EVERYTHING, WordModel, filled, ids, notes, opened

HERE = Path(__file__).parent
START = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
from kb_fixtures import *
library = opened(Path(sys.argv[1]), WordModel())
print("ready", flush=True)
"""
WRITE = """
from jackfield_kb.library import Source
for number in range(100_000):
    source = Source(f"file:///{number}", "1", "/")
    library.write([(source, notes(5, first=number * 5))])
    print(number, flush=True)
"""
REFRESH = """
library.refresh(lambda done, total: print(done, flush=True))
print("done", flush=True)
"""
LOAD = """
for number in range(6):
    library.write([(None, notes(50, first=1_000 + number * 50))])
    library.refresh()
    print(number, flush=True)
"""
CHANGE = """
who = sys.argv[2]
for number in range(10):
    library.write([(None, [Record(f"doc:{who}{number}", "Shared", f"written by {who} as entry{number}")])])
    library.refresh()
"""


def process(folder: Path, code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", START.format(here=str(HERE)) + code, str(folder), *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )


def lines_until_killed(child: subprocess.Popen[str], after: float) -> list[str]:
    """Return the output of a process until it is killed, some time after it reported that it was ready."""
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(after)
    os.kill(child.pid, signal.SIGKILL)
    said = child.stdout.read().splitlines()
    child.wait()
    child.stdout.close()
    return said


@pytest.mark.parametrize("attempt", range(4))
def test_a_killed_writer_loses_nothing_it_reported(folder: Path, attempt: int) -> None:
    said = lines_until_killed(process(folder, WRITE), random.uniform(0.02, 0.5))
    library = opened(folder, WordModel())
    kept = {record.id for record in library}
    sources = library.sources()
    for number in range(len(said)):
        assert {f"doc:{number * 5 + each}" for each in range(5)} <= kept
    assert len(kept) == 5 * len(sources), "a source is there with all its records or not at all"
    library.refresh()
    if said:
        last = (len(said) - 1) * 5
        assert ids(library.search(f"subject{last}", access=EVERYTHING, limit=1)) == [f"doc:{last}"]
    library.close()


@pytest.mark.parametrize("attempt", range(4))
def test_a_killed_refresh_is_resumed(folder: Path, attempt: int) -> None:
    library = opened(folder, WordModel())
    library.write([(None, notes(3_000))])
    said = lines_until_killed(process(folder, REFRESH), random.uniform(0.05, 1.2))
    model = WordModel()
    after = opened(folder, model)
    after.refresh()
    assert after.stats().indexes == {"text": "up to date", "vectors": "up to date"}
    assert after.stats().passages == 3_000, "nothing is indexed twice"
    embedded = max([0, *(int(line) - 3_000 for line in said if line.isdigit())])
    assert model.texts <= 3_000 - embedded, "what was reported as embedded is not embedded again"
    for number in (0, 1_499, 2_999):
        found = after.search(f"subject{number}", access=EVERYTHING, limit=1)
        assert ids(found) == [f"doc:{number}"]
    after.close()
    library.close()


def test_search_works_while_another_process_loads(folder: Path) -> None:
    library = filled(folder, notes(200), WordModel())
    child = process(folder, LOAD)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    for number in range(6):
        assert ids(library.search("subject77", access=EVERYTHING, limit=1)) == ["doc:77"]
        assert child.stdout.readline() == f"{number}\n"
        fresh = 1_000 + number * 50 + 49
        found = library.search(f"subject{fresh}", access=EVERYTHING, limit=1)
        assert ids(found) == [f"doc:{fresh}"], "what another process has loaded is found at once"
    assert child.wait() == 0
    child.stdout.close()
    library.close()


def test_two_processes_can_write_and_index_concurrently(folder: Path) -> None:
    opened(folder).write([(None, notes(1))])
    children = [process(folder, CHANGE, who) for who in ("ann", "ben")]
    for child in children:
        child.communicate()
        assert child.returncode == 0
    library = opened(folder, WordModel())
    library.refresh()
    assert len(list(library)) == 21
    assert library.stats().passages == 21
    for who in ("ann", "ben"):
        for number in (0, 9):
            found = library.search(f"written by {who} entry{number}", access=EVERYTHING, limit=1)
            assert ids(found) == [f"doc:{who}{number}"]
    library.close()
