"""Embeddings from a server with OpenAI's protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from jackfield_kb.embedders import EndpointModel
from jackfield_kb.errors import EmbeddingFailedError
from jackfield_kb.library import Library
from kb_fixtures import EVERYTHING, WordModel, ids, notes

pytest.importorskip("openai")
KEY = "sk-secret-of-the-test"


class Server(ThreadingHTTPServer):
    """Returns given answers and records its requests."""

    status = 200
    spoil: Any = staticmethod(lambda answer: answer)

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(asked)
        self.server.keys.add(self.headers["Authorization"])
        rows = WordModel().embed(asked["input"]).tolist()
        data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)]
        answer: dict[str, Any] = {"object": "list", "model": asked["model"], "data": data[::-1]}
        answer["usage"] = {"prompt_tokens": 1, "total_tokens": 1}
        if self.server.status != 200:
            answer = {"error": {"message": f"wrong key {KEY}", "type": "invalid"}}
        body = json.dumps(self.server.spoil(answer)).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("x-should-retry", "false")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def endpoint(server: Server) -> EndpointModel:
    address = f"http://127.0.0.1:{server.server_port}/v1"
    return EndpointModel("small-model", base_url=address, api_key=KEY, timeout=10)


def test_a_library_is_embedded_in_batches(server: Server, endpoint: EndpointModel, folder: Path) -> None:
    library = Library(folder, embedder=endpoint, notice=lambda line: None)
    library.write([(None, notes(150))])
    library.refresh()
    assert [len(each["input"]) for each in server.requests] == [48, 48, 48, 6]
    assert {each["model"] for each in server.requests} == {"small-model"}
    assert server.keys == {f"Bearer {KEY}"}
    found = library.search("subject120", access=EVERYTHING, limit=1)
    assert ids(found) == ["doc:120"]
    asked = len(server.requests)
    library.search("subject120", access=EVERYTHING, limit=1, namespace="studio")
    assert len(server.requests) == asked, "the same query is not embedded twice"
    library.close()


@pytest.mark.parametrize(
    ("status", "said"), [(401, "api_key_env"), (404, "base_url"), (429, "later"), (500, "500")]
)
def test_an_endpoint_error_is_explained_without_the_key(
    server: Server, endpoint: EndpointModel, status: int, said: str
) -> None:
    server.status = status
    with pytest.raises(EmbeddingFailedError, match=said) as raised:
        endpoint.embed(["x"])
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda answer: {**answer, "data": answer["data"][:1]},
        lambda answer: {**answer, "data": [{**each, "embedding": [0.0] * 4} for each in answer["data"]]},
    ],
    ids=["too few", "of no length"],
)
def test_invalid_vectors_are_rejected(server: Server, endpoint: EndpointModel, spoil: Any) -> None:
    server.spoil = spoil
    with pytest.raises(EmbeddingFailedError, match="vectors"):
        endpoint.embed(["one", "two"])


def test_an_unreachable_server_is_reported(server: Server, folder: Path) -> None:
    gone = EndpointModel("m", base_url="http://127.0.0.1:9/v1", api_key="x", timeout=1)
    with pytest.raises(EmbeddingFailedError, match="cannot be reached"):
        gone.embed(["x"])


def test_full_text_search_works_when_the_server_fails(
    server: Server, endpoint: EndpointModel, folder: Path
) -> None:
    said: list[str] = []
    library = Library(folder, embedder=endpoint, notice=said.append)
    library.write([(None, notes(20))])
    library.refresh()
    server.status = 500
    for query in ("subject7 about", "subject7"):
        assert ids(library.search(query, access=EVERYTHING, limit=1)) == ["doc:7"]
    assert len([line for line in said if "full-text search only" in line]) == 1, "said once"
    server.status = 200
    assert ids(library.search("subject7 nothing", access=EVERYTHING, limit=1)) == ["doc:7"]
    library.close()


def test_a_failed_refresh_keeps_the_records_and_continues_later(
    server: Server, endpoint: EndpointModel, folder: Path
) -> None:
    library = Library(folder, embedder=endpoint, notice=lambda line: None)
    library.write([(None, notes(100))])
    library.refresh()
    library.write([(None, notes(100, first=100))])
    server.status = 500
    with pytest.raises(EmbeddingFailedError):
        library.refresh()
    assert library.stats().indexes == {"text": "up to date", "vectors": "100 records behind"}
    assert ids(library.search("subject150", access=EVERYTHING, limit=1)) == ["doc:150"]
    server.status = 200
    server.requests.clear()
    library.refresh()
    assert sum(len(each["input"]) for each in server.requests) == 100, "only what was missing"
    assert library.stats().indexes["vectors"] == "up to date"
    library.close()
