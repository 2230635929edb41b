"""A deployment with experiments: a tool with variants, users whose arms are known, and signed files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any

from host_harness import ALLOW, PATIENCE, HostFolder, Provider
from jackfield.experiments.definition import Experiment, ExperimentsFile
from jackfield.settings import Settings
from jackfield.signatures.dsse_envelope import envelope_path
from jackfield_builder.signatures.signed_experiments import sign_experiments
from jackfield_builder.signatures.signed_registry import sign_registry
from jackfield_builder.signatures.signers import create_key_pair, read_signer
from jackfield_host.security.api_keys import digest, new_key
from jackfield_testkit.site_packages import SitePackages

PARAMETERS = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "gate": {"type": "string", "default": ""}},
    "required": ["text"],
}

HANDLERS = {
    "": """
async def execute(args, ctx):
    return ok({"by": "owner", "text": args["text"]})
""",
    "fast": """
async def execute(args, ctx):
    return ok({"by": "fast", "text": args["text"]})
""",
    "broken": """
async def execute(args, ctx):
    raise RuntimeError("broken")
""",
    "copy": """
async def execute(args, ctx):
    return ok({"text": args["text"], "by": "owner"})
""",
    "slow": """
async def execute(args, ctx):
    while not (folder() / "gate").exists():
        await asyncio.sleep(0.01)
    return ok({"by": "slow", "text": args["text"]})
""",
    "active": """
async def execute(args, ctx):
    tried = []
    try:
        await ctx.messaging.send("odd", text="hello")
    except ConnectionError:
        tried.append("message")
    await ctx.progress("half way")
    ctx.audit("noted", by="shadow")
    if (await ctx.ask_user("?", {"type": "object"}, asked_by="it", seconds=1)) == UNANSWERED:
        tried.append("question")
    if not (await ctx.call_tool("exh_note", {"text": "x"})).ok:
        tried.append("call")
    if ctx.idempotency_key is None:
        tried.append("key")
    (folder() / "tried").write_text(" ".join(tried))
    return ok({"by": "owner", "text": args["text"]}, Intent("suppress_audio", {"value": True}))
""",
}
"""What each variant of the tool does; the empty name is the tool itself."""

HEAD = """\
import asyncio
import os
from pathlib import Path

from jackfield import ok
from jackfield.contract.context import UNANSWERED
from jackfield.contract.tool import Intent


def folder():
    return Path(os.environ["HST_FOLDER"])

"""

NOTE = """\
from pathlib import Path
import os


async def execute(args, ctx):
    (Path(os.environ["HST_FOLDER"]) / "noted").touch()
    return {}
"""


def make_site(folder: Path) -> Path:
    """Install the tool, its variants and a tool that writes, and freeze them."""
    site = SitePackages(folder)
    for variant, handler in HANDLERS.items():
        site.tool(
            "exh_look",
            distribution=f"exh-look-{variant}" if variant else "exh-look",
            schema={
                "description": "Looks something up.",
                "parameters": PARAMETERS,
                "returns": {"type": "object", "properties": {"by": {}, "text": {}}},
                "timeoutMs": 30000,
                **({"variant": variant} if variant else {}),
            },
            guide="# exh_look\n\nLooks something up.\n",
            handler=HEAD + handler,
        )
    site.tool(
        "exh_note",
        distribution="exh-note",
        schema={
            "parameters": PARAMETERS,
            "category": "action",
            "sideEffects": "writes",
            "idempotent": False,
        },
        guide="# exh_note\n\nNotes something.\n",
        handler=NOTE,
    )
    registry = site.frozen(*ALLOW, "exh-*", "jackfield-experiments")
    create_key_pair(folder / "alice.pem", folder / "alice.pub.pem", None)
    sign_registry(registry, read_signer(folder / "alice.pem", None))
    return folder


@dataclass(frozen=True)
class ExperimentFolder(HostFolder):
    """The working folder of hosts with experiments."""

    deployment: str = "development"
    trusted: tuple[str, ...] = ()
    file: str = "experiments.json"

    def settings(self, served: Provider, tables: Mapping[str, Any] | None = None) -> Settings:
        """Return the settings of a host in this folder."""
        return replace(
            super().settings(served, tables),
            allow=(*ALLOW, "exh-*", "jackfield-experiments"),
            experiments=self.path / self.file,
            deployment=self.deployment,  # type: ignore[arg-type]
            trusted_keys=self.trusted,
        )

    @property
    def experiments(self) -> Path:
        """The experiments file."""
        return self.path / self.file

    def write(self, version: int = 1, *, signed: bool = False, **fields: Any) -> Experiment:
        """Write a version with one experiment, and return it."""
        described = {"tool": "exh_look", "variants": {"fast": 50}, "control": 50, **fields}
        document = {"version": version, "experiments": {"speed": described}}
        self.experiments.write_text(json.dumps(document))
        if signed:
            self.sign()
        return self.experiment

    def sign(self) -> None:
        """Sign the experiments with the key of Alice."""
        sign_experiments(self.experiments, read_signer(self.key, None))

    @property
    def key(self) -> Path:
        """The private key of Alice."""
        return self.site / "alice.pem"

    @property
    def experiment(self) -> Experiment:
        """The experiment in the file."""
        return ExperimentsFile.parse(self.experiments.read_bytes(), "file").experiments["speed"]

    def in_production(self) -> ExperimentFolder:
        """Return the same deployment in production, with everything signed by Alice."""
        self.sign()
        self.create_store()
        return replace(self, deployment="production", trusted=(str(self.site / "alice.pub.pem"),))

    def copy_experiments(self, other: ExperimentFolder) -> None:
        """Copy the experiments and their signatures to the file of another host."""
        for path, copy in (
            (self.experiments, other.experiments),
            (envelope_path(self.experiments), envelope_path(other.experiments)),
        ):
            copy.write_bytes(path.read_bytes())

    def user_in(self, arm: str | None) -> str:
        """Return a user who is assigned to an arm."""
        for number in count():
            assigned = self.experiment.assign(f"user{number}", None, 1)
            if (assigned.arm if assigned else None) == arm:
                return f"user{number}"
        raise AssertionError

    def config(self, path: Path) -> Path:
        """Write a settings file for the command line."""
        top = {
            "registry": str(self.registry),
            "allow": [*ALLOW, "exh-*", "jackfield-experiments"],
            "experiments": str(self.experiments),
            "deployment": self.deployment,
            "trusted_keys": list(self.trusted),
            "store": self.store_name,
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in top.items()]
        lines += [f"[stores.{self.store_name}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in self.store_table.items()]
        path.write_text("\n".join(lines))
        return path


def access(*users: str, roles: tuple[str, ...] = ()) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Return the keys of users for a host, and the headers of each of them."""
    keys, headers = {}, {}
    for user in users:
        made = new_key(user, user)
        keys[user] = {"digest": digest(made.key), "user": user, "roles": list(roles)}
        headers[user] = {"authorization": f"Bearer {made.key}"}
    return keys, headers


def in_event_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in its own event loop."""

    @wraps(test)
    def run(*args: Any, **fixtures: Any) -> None:
        asyncio.run(test(*args, **fixtures))

    return run


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(PATIENCE):
        while not await holds():  # noqa: ASYNC110 - other hosts change what is looked at
            await asyncio.sleep(0.02)
