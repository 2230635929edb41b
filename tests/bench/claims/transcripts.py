"""Public transcripts of assistants that call tools, in one form.

Both collections are read as published; `claims.md` in docs says where to get them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jackfield.call_states import CallState

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "transcripts"

Part = Literal["development", "held-out"]


class CalledTool(NamedTuple):
    """One call: the tool, how it ended, and what it returned."""

    tool: str
    state: CallState
    result: str


class AssistantMessage(NamedTuple):
    """A message of the assistant, and the calls since its previous one."""

    turn: int
    calls: tuple[CalledTool, ...]
    text: str


class Conversation(NamedTuple):
    """The messages of one conversation, and the tools that change something, with their descriptions."""

    name: str
    writers: Mapping[str, str]
    messages: tuple[AssistantMessage, ...]


@cache
def phrases(collection: str) -> dict[str, list[str]]:
    """Return the `says` of the collection's tools, written from the tools' definitions alone."""
    said: dict[str, dict[str, list[str]]] = json.loads(
        (Path(__file__).parent / "says.json").read_text("utf-8")
    )
    return said[collection]


def tau_bench(part: Part) -> Iterator[Conversation]:
    """Yield the airline conversations of GPT-4o; every second task is held out."""
    path = DATA / "tau_bench" / "gpt-4o-airline.json"
    if not path.exists():
        return
    for trial in json.loads(path.read_text("utf-8")):
        if (trial["task_id"] % 2 == 1) is (part == "held-out"):
            name = f"task {trial['task_id']}, trial {trial['trial']}"
            yield Conversation(name, _TAU_WRITERS, tuple(_tau_messages(trial["traj"])))


_TAU_WRITERS = {
    "book_reservation": "Book a reservation.",
    "cancel_reservation": "Cancel the whole reservation.",
    "send_certificate": "Send a certificate to a user. Be careful!",
    "transfer_to_human_agents": "Transfer the user to a human agent, with a summary of the user's issue.",
    "update_reservation_baggages": "Update the baggage information of a reservation.",
    "update_reservation_flights": "Update the flight information of a reservation.",
    "update_reservation_passengers": "Update the passenger information of a reservation.",
}
"""The tools that write, with the beginnings of their descriptions as published."""


def _tau_messages(trajectory: list[dict[str, Any]]) -> Iterator[AssistantMessage]:
    turn, calls = 0, list[CalledTool]()
    for message in trajectory:
        content = message.get("content") or ""
        if message["role"] == "user":
            turn += 1
        elif message["role"] == "tool":
            state = CallState.FAILED if content.startswith("Error") else CallState.DONE
            calls.append(CalledTool(message["name"], state, content))
        elif message["role"] == "assistant" and content:
            yield AssistantMessage(turn, tuple(calls), content)
            calls.clear()


def schema_guided(part: Part) -> Iterator[Conversation]:
    """Yield the Schema-Guided Dialogues: `dev`, or `test`, which is mostly about other services, held out."""
    folder = DATA / "sgd" / ("test" if part == "held-out" else "dev")
    if not (folder / "schema.json").exists():
        return
    services = {
        each["service_name"]: each for each in json.loads((folder / "schema.json").read_text("utf-8"))
    }
    for path in sorted(folder.glob("dialogues_*.json")):
        for dialogue in json.loads(path.read_text("utf-8")):
            writers = {
                intent["name"]: intent["description"]
                for service in dialogue["services"]
                for intent in services[service]["intents"]
                if intent["is_transactional"]
            }
            messages = tuple(_sgd_messages(dialogue["turns"], writers))
            yield Conversation(dialogue["dialogue_id"], writers, messages)


def _sgd_messages(turns: list[dict[str, Any]], writers: Mapping[str, str]) -> Iterator[AssistantMessage]:
    for number, turn in enumerate(turns):
        if turn["speaker"] != "SYSTEM":
            continue
        calls = []
        for frame in turn["frames"]:
            called = frame.get("service_call")
            if called is not None:
                acts = {action["act"] for action in frame["actions"]}
                failed = called["method"] in writers and "NOTIFY_SUCCESS" not in acts
                results = json.dumps(frame.get("service_results", []))
                state = CallState.FAILED if failed else CallState.DONE
                calls.append(CalledTool(called["method"], state, results))
        yield AssistantMessage(number, tuple(calls), turn["utterance"])
