"""The snapshot has the same version for the same inputs and another one for every relevant change."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from jackfield.contract.snapshot import Snapshot, SnapshotError, previous
from jackfield.distributions import package_hash
from jackfield_builder.snapshot import write_snapshot


def version(site: Any) -> str:
    report = site.run_json("build")
    assert report["version"], report["findings"]
    return str(report["version"])


def registry(site: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((site.folder.parent / "tool_registry.json").read_text())
    return document


def test_the_snapshot_contains_what_a_session_needs(site: Any) -> None:
    folder = site.tool("echo")
    built = version(site)
    document = registry(site)
    (tool,) = document["tools"]

    assert document["version"] == built == "1.0." + document["contentHash"].removeprefix("sha256:")[:8]
    assert document["kernel"]["api"] == "1"
    assert tool["toolId"] == "echo"
    assert tool["jsonSchema"]["properties"]["times"]["default"] == 1
    assert tool["summary"] == "Says a text again."
    assert tool["documentation"] == (folder / "guide.md").read_text()
    assert tool["handler"] == "fab_echo.handler:execute"
    assert (tool["distribution"]["name"], tool["distribution"]["version"]) == ("fab-echo", "1.0.0")
    assert tool["timeoutMs"] == 60_000


def test_two_builds_of_the_same_inputs_give_the_same_bytes(site: Any) -> None:
    site.tool("echo")
    site.tool("other")
    file = site.folder.parent / "tool_registry.json"
    # With other hashes, sets have another order.
    site.run("build", SOURCE_DATE_EPOCH="1700000000", PYTHONHASHSEED="1")
    first = file.read_bytes()
    site.run("build", SOURCE_DATE_EPOCH="1700000000", PYTHONHASHSEED="2")
    assert file.read_bytes() == first
    site.run("build", SOURCE_DATE_EPOCH="1700000001")
    assert file.read_bytes() != first
    assert json.loads(file.read_bytes())["version"] == json.loads(first)["version"]


def test_a_tool_without_says_has_no_such_member(site: Any) -> None:
    site.tool("echo")
    site.tool("shout", schema={"says": ["shouted aloud", "cried"]})
    version(site)
    tools = {tool["toolId"]: tool for tool in registry(site)["tools"]}
    assert "says" not in tools["echo"]
    assert tools["shout"]["says"] == ["shouted aloud", "cried"]


SAVES_DURING_THE_BUILD = """\
from pathlib import Path

from jackfield import hookimpl
from jackfield.offers import Adapted, SchemaAdapterOffer

GUIDE = Path({guide!r})


def adapt(tool_id, description, parameters):
    if GUIDE.read_text().count("Saved.") < {saves}:
        GUIDE.write_text(GUIDE.read_text() + "\\nSaved.\\n")
    return Adapted({{}}, ())


@hookimpl
def jackfield_schema_adapters():
    return [SchemaAdapterOffer("saving", adapt)]
"""


def test_a_file_that_is_saved_during_the_build_is_read_again(site: Any) -> None:
    folder = site.tool("echo")
    site.plugin("fab-saving", SAVES_DURING_THE_BUILD.format(guide=str(folder / "guide.md"), saves=2))
    first = version(site)
    assert registry(site)["tools"][0]["documentation"] == (folder / "guide.md").read_text()
    assert "Saved.\n\nSaved." in (folder / "guide.md").read_text()
    assert version(site) == first


def test_a_tool_that_never_stops_changing_is_not_frozen(site: Any) -> None:
    folder = site.tool("echo")
    site.plugin("fab-saving", SAVES_DURING_THE_BUILD.format(guide=str(folder / "guide.md"), saves=100))
    report = site.run_json("build")
    assert [(each["code"], each["subject"]) for each in report["findings"]] == [("JF107", "echo")]
    assert not (site.folder.parent / "tool_registry.json").exists()


def test_place_and_order_of_installation_do_not_change_the_version(site: Any, tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma"):
        site.tool(name)
    elsewhere = type(site)(tmp_path / "elsewhere" / "site")
    for name in ("gamma", "alpha", "beta"):
        elsewhere.tool(name)
    assert version(site) == version(elsewhere)


def test_the_order_of_unordered_lists_does_not_change_the_version(site: Any, tmp_path: Path) -> None:
    site.tool("echo", schema={"allowedModes": ["text", "voice"]})
    other = type(site)(tmp_path / "other" / "site")
    other.tool("echo", schema={"allowedModes": ["voice", "text"]})
    version(site), version(other)
    assert registry(site)["tools"][0]["allowedModes"] == registry(other)["tools"][0]["allowedModes"]


def change_guide(folder: Path) -> None:
    text = (folder / "guide.md").read_bytes()
    (folder / "guide.md").write_bytes(text.replace(b"Say hello.", b"Say hello!"))


def change_schema(folder: Path) -> None:
    schema = json.loads((folder / "schema.json").read_text())
    schema["latencyBudgetMs"] += 1
    (folder / "schema.json").write_text(json.dumps(schema))


def change_handler(folder: Path) -> None:
    with (folder / "handler.py").open("a") as file:
        file.write("# another byte\n")


def add_module(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "data.bin").write_bytes(b"\0")


@pytest.mark.parametrize("change", [change_guide, change_schema, change_handler, add_module])
def test_every_change_that_affects_a_session_changes_the_version(site: Any, change: Any) -> None:
    folder = site.tool("echo")
    site.tool("other")
    before = version(site)
    change(folder)
    assert version(site) != before


def test_the_plugin_set_the_policy_order_and_plugin_code_change_the_version(site: Any) -> None:
    site.tool("echo")
    seen = [version(site)]
    policies = (
        "from jackfield import hookimpl\nfrom jackfield.offers import PolicyOffer, Stage\n@hookimpl\n"
        "def jackfield_policies():\n"
        "    return [PolicyOffer('a', Stage.ADMIT, {a}, dict), PolicyOffer('b', Stage.ADMIT, 2, dict)]\n"
    )
    file = site.plugin("fab-policies", policies.format(a=1))
    seen.append(version(site))
    # Of another length: Python takes a file of the same second and length for the one it has compiled.
    file.write_text(policies.format(a=30))
    seen.append(version(site))
    assert [policy["name"] for policy in registry(site)["policies"]] == ["b", "a"]
    file.write_text(policies.format(a=30) + "# another byte\n")
    seen.append(version(site))
    assert len(set(seen)) == 4


def test_changes_that_affect_no_session_do_not_change_the_version(site: Any) -> None:
    folder = site.tool("echo")
    before = version(site)
    (folder / "__pycache__").mkdir(exist_ok=True)
    (folder / "__pycache__" / "handler.cpython-311.pyc").write_bytes(b"x")
    (folder / ".handler.py.swp").write_bytes(b"x")
    (folder / "handler.py~").write_bytes(b"x")
    for name in ("guide.md", "handler.py", "schema.json"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content.replace(b"\n", b"\r\n"))
    assert version(site) == before


def test_compiled_code_is_identified_by_the_version_of_its_distribution(tmp_path: Path) -> None:
    def hashed(binary: bytes, tag: str, version: str) -> str:
        folder = tmp_path / "package"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / f"fast.{tag}.so").write_bytes(binary)
        return package_hash(folder, version)

    assert hashed(b"elf", "cpython-311-x86_64", "1.0") == hashed(b"mach-o", "cpython-311-darwin", "1.0")
    assert hashed(b"elf", "cpython-311-x86_64", "1.0") != hashed(b"elf", "cpython-311-x86_64", "1.1")


def test_check_reports_what_is_not_up_to_date(site: Any) -> None:
    folder = site.tool("echo")
    missing = site.run("check")
    assert missing.returncode == 1
    assert "run `jackfield build`" in missing.stderr

    version(site)
    current = site.run("check")
    assert (current.returncode, "up to date" in current.stdout) == (0, True)

    change_guide(folder)
    stale = site.run("check")
    assert stale.returncode == 1
    assert "echo: guide changed (patch)" in stale.stderr
    assert "not up to date; run `jackfield build`" in stale.stderr


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "not a registry"),
        (b"[]", "not a registry"),
        (b'{"formatVersion": 99}', "the registry has format 99, but this kernel only reads format 1"),
    ],
)
def test_a_file_that_is_not_a_registry_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "tool_registry.json"
    file.write_bytes(content)
    with pytest.raises(SnapshotError, match=reason):
        Snapshot.load(file)


def test_an_edited_registry_is_refused(site: Any) -> None:
    site.tool("echo")
    version(site)
    file = site.folder.parent / "tool_registry.json"
    file.write_text(file.read_text().replace("Says a text again.", "Does as it likes."))
    done = site.run("tools")
    assert done.returncode == 1
    assert "edited or damaged" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failed_write_keeps_the_old_registry_and_leaves_no_temporary_file(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.tool("echo")
    version(site)
    file = site.folder.parent / "tool_registry.json"
    before = file.read_bytes()
    snapshot = Snapshot.load(file)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_snapshot(snapshot, file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".tool")] == []


def test_the_previous_registry_is_kept_for_comparison(site: Any) -> None:
    site.tool("echo")
    first = version(site)
    file = site.folder.parent / "tool_registry.json"
    assert not previous(file).exists()
    version(site)
    assert not previous(file).exists(), "the same registry again is no other one"

    site.tool("other")
    second = version(site)
    assert second != first
    assert Snapshot.load(previous(file)).version == first
    version(site)
    assert Snapshot.load(previous(file)).version == first

    file.write_text("{}")
    assert version(site) == second
    assert Snapshot.load(previous(file)).version == first, "what is damaged is not worth keeping"


def test_an_unwritable_registry_gives_an_error_without_traceback(site: Any) -> None:
    site.tool("echo")
    done = site.run("build", "--registry", "/proc/nowhere/tool_registry.json")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: /proc/nowhere/tool_registry.json:")


def _without(key: str) -> Any:
    return lambda wire: {name: value for name, value in wire.items() if name != key}


def _with_owner(kind: str, **changed: Any) -> Any:
    def edit(wire: dict[str, Any]) -> dict[str, Any]:
        first, *rest = wire[kind]
        owner = {name: value for name, value in {**first["distribution"], **changed}.items() if value}
        return {**wire, kind: [{**first, "distribution": owner}, *rest]}

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        _without("version"),
        _without("contentHash"),
        _without("tools"),
        _without("kernel"),
        lambda wire: {**wire, "version": "1.0.12345678"},
        lambda wire: {**wire, "version": None},
        lambda wire: {**wire, "tools": "none"},
        lambda wire: {**wire, "tools": [*wire["tools"], "one more"]},
        _with_owner("tools", version=None),
        _with_owner("plugins", version=None),
        _with_owner("plugins", contentHash="sha256:0"),
    ],
)
def test_an_edit_in_any_field_of_the_registry_is_refused(site: Any, edit: Any) -> None:
    site.tool("echo")
    site.enforcer()
    file = site.frozen("fab-*")
    wire = json.loads(file.read_text())
    file.write_text(json.dumps(wire, indent=2))
    assert Snapshot.load(file).version == wire["version"], "how it is written is not a keyword"
    file.write_text(json.dumps(edit(wire)))
    with pytest.raises(SnapshotError, match="edited or damaged after the build; run `jackfield build`"):
        Snapshot.load(file)


@pytest.mark.parametrize("epoch", ["99999999999999999999", "²", "soon", ""])
def test_an_invalid_source_date_epoch_does_not_stop_the_build(site: Any, epoch: str) -> None:
    site.tool("echo")
    assert site.run("build", SOURCE_DATE_EPOCH=epoch).returncode == 0
    built = json.loads((site.folder.parent / "tool_registry.json").read_text())["buildTimestamp"]
    assert datetime.fromisoformat(built).tzinfo


def test_the_target_of_a_linked_registry_is_replaced(site: Any, tmp_path: Path) -> None:
    site.tool("echo")
    (tmp_path / "shared").mkdir()
    link = site.folder.parent / "tool_registry.json"
    link.symlink_to(tmp_path / "shared" / "current.json")
    first = version(site)
    site.tool("two")
    second = version(site)

    assert first != second
    assert link.is_symlink()
    assert Snapshot.load(tmp_path / "shared" / "current.json").version == second
    assert Snapshot.load(previous(link)).version == first, "beside the link, where `jackfield diff` looks"
    assert [each.name for each in (tmp_path / "shared").iterdir()] == ["current.json"]


def test_a_file_with_a_non_utf8_name_is_hashed(site: Any) -> None:
    folder = site.tool("echo")
    before = version(site)
    with open(os.fsencode(folder) + b"/caf\xe9.txt", "w") as file:  # noqa: PTH123 - a path is a text
        file.write("menu")
    assert version(site) != before
    assert site.run("check").returncode == 0
