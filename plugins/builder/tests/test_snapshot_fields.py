"""The snapshot records its origin: commit, time, kernel, and the hashes of the frozen code."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from importlib_metadata import version as installed
from jackfield.distributions import package_hash


def frozen(site: Any, **environ: str) -> dict[str, Any]:
    done = site.run("build", "--json", **environ)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads((site.folder.parent / "tool_registry.json").read_text())
    return document


def commit(folder: Path) -> str:
    """Make the folder a repository with one commit and return the hash of the commit."""

    def git(*arguments: str) -> str:
        config = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *config, *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "first")
    return git("rev-parse", "HEAD")


def test_commit_and_time_are_recorded_but_not_part_of_the_version(site: Any) -> None:
    site.tool("echo")
    before = frozen(site, SOURCE_DATE_EPOCH="1700000000", GIT_CEILING_DIRECTORIES=str(site.folder.parents[1]))
    assert (before["gitCommit"], before["buildTimestamp"]) == (None, "2023-11-14T22:13:20Z")
    made = commit(site.folder.parent)
    after = frozen(site, SOURCE_DATE_EPOCH="1700000060")
    assert (after["gitCommit"], after["buildTimestamp"]) == (made, "2023-11-14T22:14:20Z")
    assert after["version"] == before["version"]


def test_kernel_plugins_and_code_hashes_are_recorded(site: Any) -> None:
    folder = site.tool("echo")
    site.plugin(
        "fab-extras",
        "from jackfield import hookimpl\n"
        "from jackfield.offers import CapabilityOffer, IntentHandlerOffer, PolicyOffer, Stage\n"
        "@hookimpl\ndef jackfield_policies():\n"
        "    return [PolicyOffer('p', Stage.ADMIT, 1, dict, enforces=('rateLimit',))]\n"
        "@hookimpl\ndef jackfield_capabilities():\n    return [CapabilityOffer('c', dict)]\n"
        "@hookimpl\ndef jackfield_intent_handlers():\n    return [IntentHandlerOffer('I', dict)]\n",
    )
    document = frozen(site)
    assert document["formatVersion"] == 1
    assert document["kernel"] == {"version": installed("jackfield-kernel"), "api": "1"}
    assert document["policies"] == [{"name": "p", "stage": "ADMIT", "distribution": "fab-extras"}]
    assert (document["enforced"], document["capabilities"], document["intents"]) == (
        ["rateLimit"],
        ["c"],
        ["I"],
    )
    (plugin,) = document["plugins"]
    assert (plugin["distribution"]["name"], plugin["distribution"]["version"]) == ("fab-extras", "1.0.0")
    assert plugin["distribution"]["contentHash"] == package_hash(site.folder / "fab_extras", "1.0.0")
    (tool,) = document["tools"]
    assert tool["distribution"] == {
        "name": "fab-echo",
        "version": "1.0.0",
        "contentHash": package_hash(folder, "1.0.0"),
        "codeHash": package_hash(folder, "1.0.0", exclude=("schema.json", "guide.md")),
    }
    assert tool["distribution"]["contentHash"] != tool["distribution"]["codeHash"]
    assert tool["providerSchemas"] == {}
