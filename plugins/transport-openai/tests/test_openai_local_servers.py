"""`provider = "auto"` finds servers on this machine: each fake speaks its product's protocol on a socket."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from jackfield.offers import Detected, Undetected
from jackfield.settings import SettingsError, parse_offer
from jackfield_openai import jackfield_transports, local_servers
from jackfield_openai.local_servers import VARIABLE, find

Answer = Callable[[Mapping[str, Any]], Any] | Any
Start = Callable[[Mapping[str, Answer]], "FakeServer"]


class FakeServer(ThreadingHTTPServer):
    """Answers "METHOD /path" with JSON, with bytes as they are, or with a status."""

    daemon_threads = True

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers
        self.asked: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeServer

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        asked = f"{self.command} {self.path}"
        self.server.asked.append(asked)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        answer = self.server.answers.get(asked, 404)
        if callable(answer):
            answer = answer(body)
        status = answer if isinstance(answer, int) else 200
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:
            return  # The client has closed the connection.


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not make a fake server look like one that hangs."""
    monkeypatch.setattr(local_servers, "FIRST_SECONDS", 20.0)
    monkeypatch.setattr(local_servers, "METADATA_SECONDS", 20.0)


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts fake servers, which end with the test."""
    servers: list[FakeServer] = []

    def start(answers: Mapping[str, Answer]) -> FakeServer:
        servers.append(FakeServer(answers))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def models(*names: object, owner: str = "somebody") -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": owner} for name in names]}


def ollama(running: tuple[str, ...] = (), **capabilities: list[str]) -> dict[str, Answer]:
    names = {name.replace("_", ":"): said for name, said in capabilities.items()}
    return {
        "GET /v1/models": models(*names, owner="library"),
        "GET /api/version": {"version": "0.40.1"},
        "GET /api/ps": {"models": [{"model": name} for name in running]},
        "POST /api/show": lambda body: {"license": "long " * 2000, "capabilities": names[body["model"]]},
    }


def llama_cpp(**caps: bool) -> dict[str, Answer]:
    props = {"chat_template": "{{ messages }}", "chat_template_caps": caps}
    return {"GET /v1/models": models("qwen3-4b.gguf", owner="llamacpp"), "GET /props": props}


def vllm(completion: Answer) -> dict[str, Answer]:
    return {
        "GET /v1/models": models("Qwen/Qwen3-8B", owner="vllm"),
        "POST /v1/chat/completions": completion,
    }


def calls_ping(body: Mapping[str, Any]) -> dict[str, Any]:
    assert body["tools"][0]["function"]["name"] == "ping"
    assert "tool_choice" not in body
    call = {"id": "1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}


def only_talks(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": "ping()"}}]}


def test_ollama_is_asked_which_of_its_models_can_call_tools(start: Start) -> None:
    server = start(ollama(gemma_2b=["completion"], qwen3_8b=["completion", "tools"]))
    (found,) = find([server.address])
    assert found == ("Ollama", server.address, "qwen3:8b")
    assert found.base_url == f"http://{server.address}/v1"
    assert "POST /v1/chat/completions" not in server.asked


def test_a_loaded_model_of_ollama_is_preferred(start: Start) -> None:
    answers = ollama(("qwen3:8b",), llama3_8b=["tools"], qwen3_8b=["tools"])
    assert find([start(answers).address])[0].model == "qwen3:8b"


def test_a_cloud_model_of_ollama_is_not_used(start: Start) -> None:
    answers = ollama(big_cloud=["tools"])
    answers["POST /api/show"] = {"capabilities": ["tools"], "remote_host": "https://ollama.com:443"}
    assert find([start(answers).address])[0].model == ""


def test_the_model_of_the_settings_is_used_if_offered(start: Start) -> None:
    server = start(ollama(llama3_8b=["tools"], qwen3_8b=["tools"]))
    assert find([server.address], "qwen3:8b")[0].model == "qwen3:8b"
    assert find([server.address], "gpt-6")[0].model == "llama3:8b"


@pytest.mark.parametrize("version", ["v0", "v1"])
def test_lm_studio_is_asked_for_a_loaded_model_with_tool_training(start: Start, version: str) -> None:
    names = ("embedder", "talker", "able", "able-and-loaded")
    v0 = [
        {"id": "embedder", "type": "embeddings", "state": "loaded"},
        {"id": "talker", "type": "llm", "state": "loaded"},
        {"id": "able", "type": "llm", "state": "not-loaded", "capabilities": ["tool_use"]},
        {"id": "able-and-loaded", "type": "vlm", "state": "loaded", "capabilities": ["tool_use"]},
    ]
    v1 = [
        {"key": "embedder", "type": "embedding"},
        {"key": "talker", "type": "llm", "capabilities": {"trained_for_tool_use": False}},
        {
            "key": "able",
            "type": "llm",
            "capabilities": {"trained_for_tool_use": True},
            "loaded_instances": [],
        },
        {
            "key": "able-and-loaded",
            "type": "llm",
            "capabilities": {"trained_for_tool_use": True},
            "loaded_instances": [{"id": "able-and-loaded"}],
        },
    ]
    answers: dict[str, Answer] = {"GET /v1/models": models(*names, owner="organization_owner")}
    answers |= (
        {"GET /api/v1/models": {"models": v1}} if version == "v1" else {"GET /api/v0/models": {"data": v0}}
    )
    server = start(answers)
    assert find([server.address]) == [("LM Studio", server.address, "able-and-loaded")]


def test_llama_cpp_reports_whether_its_template_supports_tools(start: Start) -> None:
    able = start(llama_cpp(supports_tools=True, supports_tool_calls=True))
    unable = start(llama_cpp(supports_tools=False, supports_tool_calls=False))
    assert find([unable.address, able.address]) == [
        ("llama.cpp", able.address, "qwen3-4b.gguf"),
        ("llama.cpp", unable.address, ""),
    ]


def test_an_older_llama_cpp_is_tested_with_a_call(start: Start) -> None:
    server = start({**llama_cpp(), "POST /v1/chat/completions": calls_ping})
    assert find([server.address]) == [("llama.cpp", server.address, "qwen3-4b.gguf")]


def test_vllm_is_tested_with_a_call_once(start: Start) -> None:
    server = start(vllm(calls_ping))
    for _ in range(2):
        assert find([server.address]) == [("vLLM", server.address, "Qwen/Qwen3-8B")]
    assert server.asked.count("POST /v1/chat/completions") == 1


@pytest.mark.parametrize("completion", [400, only_talks, {"choices": [{"message": {"tool_calls": "ping"}}]}])
def test_a_server_whose_model_calls_no_tool_is_not_used(start: Start, completion: Answer) -> None:
    server = start(vllm(completion))
    assert find([server.address]) == [("vLLM", server.address, "")]


def test_a_server_that_describes_its_models_comes_before_one_that_must_be_tried(start: Start) -> None:
    trial, described = start(vllm(calls_ping)), start(ollama(qwen3_8b=["tools"]))
    assert find([trial.address, described.address]) == [("Ollama", described.address, "qwen3:8b")]
    assert "POST /v1/chat/completions" not in trial.asked


def _deep(depth: int) -> bytes:
    return b'{"data":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>a page</html>",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        {"data": "many"},
        {"data": [1, None, {"id": 5}]},
        models("evil\x1b[2J", "a b", "", "x" * 300),
        _deep(100_000),
        500,
        301,
    ],
)
def test_other_services_on_a_port_are_ignored(start: Start, answer: Answer) -> None:
    server = start({"GET /v1/models": answer})
    assert find([server.address]) == []
    assert server.asked == ["GET /v1/models"]


def test_malformed_metadata_is_ignored(start: Start) -> None:
    answers = ollama(qwen3_8b=["tools"])
    answers["POST /api/show"] = {"capabilities": {"tools": "yes"}}
    assert find([start(answers).address])[0].model == ""


def test_a_response_of_100_mb_is_not_read(start: Start) -> None:
    server = start({"GET /v1/models": b" " * 100_000_000})
    began = time.monotonic()
    assert find([server.address]) == []
    assert time.monotonic() - began < 10


def test_hanging_servers_time_out(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three that accept and say nothing are asked at the same time as one that answers."""
    silent = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    server = start(ollama(qwen3_8b=["tools"]))
    try:
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in silent]
        monkeypatch.setattr(local_servers, "FIRST_SECONDS", 3.0)
        began = time.monotonic()
        assert find([*addresses, server.address]) == [("Ollama", server.address, "qwen3:8b")]
        # One after the other they would take nine.
        assert time.monotonic() - began < 8
    finally:
        for each in silent:
            each.close()


def test_a_closed_port_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    assert find([address]) == []


def _ranked(settings: Mapping[str, Any]) -> list[Detected | Undetected]:
    (offer,) = jackfield_transports()
    ranks = [each.rank for each in offer.detectors]
    assert ranks == sorted(ranks)
    declared = parse_offer("transports", offer, settings)
    return [each.detect(declared) for each in offer.detectors]


def test_the_transport_is_configured_for_the_detected_server(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start(ollama(qwen3_8b=["tools"]))
    monkeypatch.setenv(VARIABLE, server.address)
    key, found = _ranked({})
    assert key == Undetected("set OPENAI_API_KEY to use OpenAI")
    assert isinstance(found, Detected)
    assert found.reason == f"Ollama at {server.address} offers qwen3:8b"
    (offer,) = jackfield_transports()
    declared = parse_offer("transports", offer, found.settings)
    assert offer.unavailable(declared) is None
    transport = offer.create(declared)
    assert transport.modes == {"text"}


def test_the_settings_name_the_servers_to_ask(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    server = start(ollama(gemma_2b=["completion"]))
    _, found = _ranked({"local_servers": [server.address]})
    assert found == Undetected(f"add a model that can call tools to Ollama at {server.address}")
    _, found = _ranked({"local_servers": []})
    assert isinstance(found, Undetected)
    assert found.hint.startswith("start a local server (Ollama,")


def test_only_loopback_addresses_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("10.0.0.1:80", "example.com:80", "localhost:80", "127.0.0.1", "127.0.0.1:0"):
        with pytest.raises(
            SettingsError, match=r"local_servers\[0\]: expected a loopback address with a port"
        ):
            _ranked({"local_servers": [wrong]})
    monkeypatch.setenv(VARIABLE, "10.0.0.1:80,127.0.0.1:1234,[::1]:8080")
    assert local_servers.addresses(()) == ("127.0.0.1:1234", "[::1]:8080")


def test_a_key_or_an_address_in_the_settings_selects_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _ranked({"base_url": "http://models.example/v1"})[0] == Detected(
        "[transports.openai] base_url is set"
    )
    monkeypatch.setenv("OURS", "sk-secret")
    assert _ranked({"api_key_env": "OURS"})[0] == Detected("OURS is set")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert _ranked({})[0] == Detected("OPENAI_API_KEY is set")
