"""The policy in the chain: which changes need confirmation, and the preview."""

from __future__ import annotations

import asyncio
import json
from importlib import resources
from pathlib import Path
from typing import Any

import jackfield_policies
import jackfield_workspace
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield.offers import CapabilityOffer
from jackfield.settings import parse_offer
from jackfield_testkit.runtime import TestRuntime, make_tool
from jackfield_tool_bash.handler import execute as bash
from jackfield_tool_edit_file.handler import execute as edit_file
from jackfield_tool_write_file.handler import execute as write_file
from jackfield_workspace.vocabulary import FileVocabulary

POLICIES = [*jackfield_policies.jackfield_policies(), *jackfield_workspace.jackfield_policies()]


def tool(tool_id: str, execute: Any) -> Any:
    text = resources.files(f"jackfield_tool_{tool_id}").joinpath("schema.json").read_text("utf-8")
    fields = {name: value for name, value in json.loads(text).items() if name not in ("$schema", "toolId")}
    return make_tool(tool_id, execute, **fields)


class FileSession:
    """A session with the real tools, the real policies and a real folder."""

    def __init__(self, root: Path, **settings: Any) -> None:
        def offer(each: CapabilityOffer) -> CapabilityOffer:
            settings = parse_offer("capabilities", each, {"root": str(root)})
            return CapabilityOffer(each.name, lambda _, services: each.create(settings, services))

        self.work = TestRuntime(
            tool("write_file", write_file),
            tool("edit_file", edit_file),
            tool("bash", bash),
            policies=POLICIES,
            capabilities=[offer(each) for each in jackfield_workspace.jackfield_capabilities()],
            settings={"file_consent": settings},
        )
        self.session = self.work.session()

    def ask(self, said: str, tool_id: str, **arguments: Any) -> dict[str, Any]:
        async def main() -> bytes:
            self.session.begin_turn()
            self.session.add_user_text(said)
            return (await self.work.call(self.session, tool_id, json.dumps(arguments))).wire

        envelope: dict[str, Any] = json.loads(asyncio.run(main()))
        return envelope

    def card(self, said: str, tool_id: str, **arguments: Any) -> str:
        envelope = self.ask(said, tool_id, **arguments)
        assert envelope["error"]["type"] == "CONFIRMATION_REQUIRED"
        preview: str = envelope["error"]["confirmation_request"]["preview"]
        return preview

    def approve(self) -> dict[str, Any]:
        async def main() -> dict[str, Any]:
            token = [
                fields["token"] for event, fields in self.work.events if event == "confirmation_required"
            ][-1]
            answer = await self.work.resolve(self.session, token)
            assert answer is not None
            envelope: dict[str, Any] = json.loads(answer.wire)
            return envelope

        return asyncio.run(main())


def test_a_new_file_requested_by_name_is_written_at_once(root: Path) -> None:
    envelope = FileSession(root).ask(
        "Please create notes/plan.md", "write_file", path="notes/plan.md", content="x\n"
    )
    assert envelope["ok"], envelope
    assert (root / "notes/plan.md").read_text() == "x\n"


def test_a_new_file_that_was_not_named_needs_confirmation(root: Path) -> None:
    session = FileSession(root)
    card = session.card("Write that down", "write_file", path="conftest.py", content="import os\nos.x()\n")
    assert card.splitlines() == [
        "Write conftest.py?",
        "Replace an existing file: no",
        "Content: import os\\nos.x()\\n",
        "You did not ask for a change to this file by name.",
    ]
    assert list(root.iterdir()) == []
    assert session.approve()["ok"]
    assert (root / "conftest.py").exists()


def test_replacing_a_file_always_needs_confirmation(root: Path) -> None:
    (root / "plan.md").write_text("old\n")
    session = FileSession(root, trusted=["**"])
    asked = {"path": "plan.md", "content": "new\n"}
    # Without the argument nothing is replaced, even with a waiver.
    assert session.ask("Write plan.md", "write_file", **asked)["error"]["type"] == "CONFLICT"
    card = session.card("Overwrite plan.md, write it anew", "write_file", **asked, overwrite=True)
    assert card.splitlines()[-1] == "This replaces the whole file if it exists."
    assert (root / "plan.md").read_text() == "old\n"
    assert session.approve()["data"]["status"] == "replaced"
    assert (root / "plan.md").read_text() == "new\n"


def test_a_requested_edit_is_made_and_another_needs_confirmation(root: Path) -> None:
    (root / "app.py").write_text("a = 1\n")
    session = FileSession(root)
    asked = {"path": "app.py", "old_text": "a = 1", "new_text": "a = 2"}
    assert "Replace: a = 1\nWith: a = 2" in session.card("What is in app.py?", "edit_file", **asked)
    assert session.ask("Fix the number in app.py", "edit_file", **asked)["ok"]
    again = {**asked, "old_text": "a = 2", "new_text": "a = 3"}
    assert session.card("Thanks!", "edit_file", **again)
    assert (root / "app.py").read_text() == "a = 2\n"


def test_a_folder_can_be_trusted(root: Path) -> None:
    session = FileSession(root, trusted=["notes/**"])
    assert session.ask("hello", "write_file", path="notes/a/b.md", content="x")["ok"]
    assert session.card("hello", "write_file", path="src/a.py", content="x")
    assert session.card("hello", "write_file", path="notes/../src/a.py", content="x").endswith(
        "will be rejected."
    )


def test_a_file_changed_during_confirmation_is_not_overwritten(root: Path) -> None:
    (root / "plan.md").write_text("one\n")
    session = FileSession(root)
    assert session.ask("Change plan.md", "edit_file", path="plan.md", old_text="one", new_text="two")["ok"]
    session.card("hm", "write_file", path="plan.md", content="mine\n", overwrite=True)
    (root / "plan.md").write_text("theirs\n")
    assert session.approve()["error"]["type"] == "CONFLICT"
    assert (root / "plan.md").read_text() == "theirs\n"


def test_a_command_always_needs_confirmation_and_is_shown_verbatim(root: Path) -> None:
    session = FileSession(root, trusted=["**"])
    card = session.card("Run touch x in bash", "bash", command="touch x\ntouch y")
    assert card == "Run this command?\ntouch x\\ntouch y\nIt is stopped after 30 seconds."
    assert list(root.iterdir()) == []
    assert session.approve()["data"]["exit_code"] == 0
    assert sorted(each.name for each in root.iterdir()) == ["x", "y"]


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("Create notes.md", "notes.md"),
        ("please write `docs/notes.md`.", "docs/notes.md"),
        ("Fix the typo in ./README.md!", "README.md"),
        ("Could you update app.py, it is broken", "src/app.py"),
        ("Save this as \u201cshopping.txt\u201d: milk", "shopping.txt"),
        ("Hello there. Rename x to y in client.py. Thanks", "src/client.py"),
        ("put it into FIX.md", "fix.md"),
        ("Add dist to .gitignore.", ".gitignore"),
    ],
)
def test_requests_for_a_change_are_recognised(said: str, path: str) -> None:
    assert FileVocabulary().asks_for(said, path)


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("", "notes.md"),
        ("Create notes.md", "other.md"),
        ("Create notes.md", "notes.md/evil.py"),
        ("Create other/notes.md", "notes.md"),
        ("Don't change app.py", "app.py"),
        ("Fix everything except app.py", "app.py"),
        ("What does app.py write?", "app.py"),
        ("Did you change app.py?", "app.py"),
        ("app.py", "app.py"),
        ("Read write.py", "write.py"),
        ("Create notes.md. Never mind", "notes.md"),
        ("Fix the bug. I looked at app.py", "app.py"),
        ("Add a line", "a"),
    ],
)
def test_other_sentences_do_not_request_a_change(said: str, path: str) -> None:
    assert not FileVocabulary().asks_for(said, path)


@settings(deadline=None)
@given(st.text(max_size=80), st.text(min_size=3, max_size=20))
def test_a_request_counts_only_for_the_named_file(said: str, path: str) -> None:
    if path.rpartition("/")[2].casefold() not in said.casefold():
        assert not FileVocabulary().asks_for(said, path)
